#include "util/result.hpp"

#include <cerrno>
#include <system_error>

namespace cudabpf {

Error errno_error(std::string what, std::string hint, int exit_code) {
  int saved = errno;
  return Error{std::move(what) + ": " + std::generic_category().message(saved), std::move(hint),
               exit_code};
}

}  // namespace cudabpf
