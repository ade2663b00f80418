// Where something is asked for by plain HTTP, as a user gives it.
#pragma once

#include <string>

#include "util/result.hpp"

namespace cudabpf::http {

struct Url {
  std::string host;  // a name or an IP address, that of IPv6 without brackets
  std::string port;
  std::string target;  // the path, and what follows it

  // `flag` is what the error calls it, and `usual_target` is for a URL without a path.
  static Result<Url> parse(const std::string& text, const std::string& flag,
                           const std::string& usual_target);

  std::string authority() const;  // "[::1]:4318"
  std::string text() const { return "http://" + authority() + target; }
};

}  // namespace cudabpf::http
