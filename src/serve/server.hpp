// The site over HTTP: libmicrohttpd reads requests and writes answers, on a thread a connection.
// Connections are accepted here, so that each can be bounded before a byte of it is read.
#pragma once

#include <memory>

#include "serve/connections.hpp"
#include "serve/site.hpp"
#include "util/result.hpp"
#include "util/system/event_fd.hpp"

struct MHD_Daemon;

namespace cudabpf::serve {

class Server {
 public:
  static Result<std::unique_ptr<Server>> start(Fd listening, Site& site);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until `end` can be read from. Connections are cut off then.
  void run(int end);

 private:
  struct Callbacks;

  Server(Fd listening, Site& site) : listening_(std::move(listening)), site_(site) {}

  void accept_all();

  Fd listening_;
  EventFd freed_;  // when a connection has ended
  Site& site_;
  Connections connections_;
  // There are no descriptors: not before something has ended, or later.
  bool cannot_accept_ = false;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace cudabpf::serve
