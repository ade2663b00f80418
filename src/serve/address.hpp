// Where the server listens.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::serve {

class Address {
 public:
  // "127.0.0.1:8077", "[::1]:8077", "localhost:8077". Names of machines are not looked up.
  static Result<Address> parse(const std::string& text);

  // Only who is on this machine reaches it.
  bool is_loopback() const;
  bool is_any() const;  // of the machine's addresses
  unsigned port() const;
  // As --listen has it: "[::1]:8077".
  std::string text() const { return host_text() + ":" + std::to_string(port()); }
  // By what clients may call it beside its number: a name in DNS, or that of a proxy before it.
  Result<> add_name(const std::string& name);
  // As the beginning of a link. One that stands for all addresses of the machine has no link of its
  // own: then it is by its name, or by the first of those addresses that others may reach.
  std::string url() const;

  // Whether a browser that sends this Host header means this server. Another site's name that was
  // made to lead here (DNS rebinding) does not. Ports are not looked at, so that `ssh -L` and
  // proxies work.
  bool is_meant_by(std::string_view host) const;

  // Listens there. Port 0 becomes the one that was free.
  Result<Fd> listen();

 private:
  std::string host_text() const;

  sockaddr_storage address_{};
  socklen_t size_ = 0;
  std::vector<std::string> names_;
};

}  // namespace cudabpf::serve
