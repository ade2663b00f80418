// The addresses of a host.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "util/http/patience.hpp"
#include "util/http/url.hpp"
#include "util/result.hpp"

namespace cudabpf::http {

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
};

// The system's resolver takes as long as it likes, and cannot be told to stop. So it works on a
// thread that nobody waits for longer than they have patience, and there is one at a time.
//
// A program without the dynamic linker must not use it, since it loads libraries: it knows the
// names in /etc/hosts.
class Lookup {
 public:
  explicit Lookup(Url url) : url_(std::move(url)) {}

  using Addresses = std::vector<SocketAddress>;
  Result<Addresses> addresses(const Patience& patience);

 private:
  class UnderWay;
  Url url_;
  std::shared_ptr<UnderWay> under_way_;  // null: none is
};

// The numbers that a file as /etc/hosts has for a name.
std::vector<std::string> numbers_in_hosts(const std::string& path, const std::string& name);

}  // namespace cudabpf::http
