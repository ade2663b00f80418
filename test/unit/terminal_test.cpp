#include "util/terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "sample_calls.hpp"
#include "sink/status.hpp"
#include "util/fd.hpp"
#include "util/log.hpp"

using namespace cudabpf;

namespace {

// A terminal, and what was drawn on it.
class PseudoTerminal {
 public:
  PseudoTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    if (!master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0) return;
    slave_ = Fd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY));
    winsize size{24, 132, 0, 0};
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

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

}  // namespace

TEST_CASE("Numbers as people read them") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1'204'331) == "1,204,331");
  CHECK(human_count(99'999'999) == "99,999,999");
  CHECK(human_count(100'000'000) == "100 M");
  CHECK(human_count(999'600'000) == "1.00 G");
  CHECK(human_count(12'345'678'901) == "12.3 G");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes((1 << 20) - 1) == "1.00 MiB");
  CHECK(human_bytes(150 << 20) == "150 MiB");
  CHECK(human_bytes(~std::uint64_t{0}) == "16.0 EiB");
  CHECK(human_time(0) == "0 ns");
  CHECK(human_time(999) == "999 ns");
  CHECK(human_time(1000) == "1.00 µs");
  CHECK(human_time(999'499) == "999 µs");
  CHECK(human_time(999'500) == "1.00 ms");
  CHECK(human_time(12'431'000'000) == "12.4 s");
  CHECK(human_time(1'677'000'000'000) == "27:57 min");  // and not "27:57" of whatever
  CHECK(human_time(3'723'000'000'000) == "1:02:03 h");
  CHECK(human_time(432'000'000'000'000) == "5.00 d");
  CHECK(clock_time(0) == "00:00");
  CHECK(clock_time(3'599'999'999'999) == "59:59");
}

TEST_CASE("What is at the other end") {
  Variable columns("COLUMNS", nullptr), term("TERM", "xterm"), no_color("NO_COLOR", nullptr);
  Fd null(::open("/dev/null", O_WRONLY));
  CHECK(!terminal_of(null.get()).is_terminal);
  CHECK(!terminal_of(null.get()).color);
  CHECK(terminal_of(null.get()).width == 80);
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  CHECK(terminal_of(terminal.fd()).is_terminal);
  CHECK(terminal_of(terminal.fd()).color);
  CHECK(terminal_of(terminal.fd()).width == 132);
  {
    Variable wide("COLUMNS", "100"), set("NO_COLOR", "1");
    CHECK(terminal_of(terminal.fd()).width == 100);
    CHECK(!terminal_of(terminal.fd()).color);
  }
  Variable dumb("TERM", "dumb");
  CHECK(!terminal_of(terminal.fd()).color);
}

TEST_CASE("The status line in words") {
  CHECK(status_text({12'900'000'000, 1'204'331, 98'211, 3, 0}) ==
        "cudabpf  00:12  1,204,331 calls  98,211/s  3 processes  0 lost");
  CHECK(status_text({0, 0, 0, 1, 7}) == "cudabpf  00:00  0 calls  0/s  1 process  7 lost");
}

TEST_CASE("The status line is drawn at most five times a second, and goes away") {
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  Variable columns("COLUMNS", nullptr);
  {
    StatusSink status(terminal.fd());
    status.begin({});
    Process process;
    status.process(process);
    status.call(SampleCall("cuInit"));
    status.lost({Loss::ring_entry, 5, 0, 0, ""});
    status.lost({Loss::ring_name, 9, 0, 0, ""});  // nothing is lost by it
    status.flush();
    std::string drawn = terminal.drawn();
    CHECK(drawn.starts_with("\rcudabpf  00:00  1 calls  "));
    CHECK(drawn.ends_with("/s  1 process  5 lost\033[K"));
    status.flush();
    CHECK(terminal.drawn().empty());
    wait_ms(220);
    status.flush();
    CHECK(!terminal.drawn().empty());

    // A message clears the line first, and none is drawn into it.
    Fd saved(::dup(2));
    ::dup2(terminal.fd(), 2);
    log::warning("the disk is full");
    ::dup2(saved.get(), 2);
    status.flush();
    CHECK(terminal.drawn() == "\r\033[Kcudabpf: warning: the disk is full\r\n");
    wait_ms(220);
    status.flush();
    CHECK(terminal.drawn().ends_with("5 lost\033[K"));
    status.end({});
    CHECK(terminal.drawn() == "\r\033[K");
    wait_ms(220);
    status.flush();
  }
  CHECK(terminal.drawn().empty());
}

TEST_CASE("Nothing is drawn where there is no terminal") {
  int fds[2];
  REQUIRE(::pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
  Fd reader(fds[0]), writer(fds[1]);
  {
    StatusSink status(writer.get());
    status.begin({});
    status.call(SampleCall("cuInit"));
    status.flush();
    status.end({});
  }
  char byte;
  CHECK(::read(reader.get(), &byte, 1) < 0);
}
