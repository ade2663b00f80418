// A terminal for tests, and the environment that describes it.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "util/system/fd.hpp"

namespace cudabpf {

// A terminal whose output can be read; it echoes nothing.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short width = 132)
      : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) return;
    slave_ = Fd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY));
    winsize size{24, width, 0, 0};
    if (slave_) ::ioctl(slave_.get(), TIOCSWINSZ, &size);
  }
  int fd() const { return slave_.get(); }
  std::string drawn() {
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = ::read(master_.get(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<std::size_t>(size));
    return text;
  }

 private:
  Fd master_, slave_;
};

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before;
    if (value)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace cudabpf
