#include "util/console/screen.hpp"

#include <sys/eventfd.h>
#include <termios.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "pseudo_terminal.hpp"
#include "sink/status.hpp"
#include "support/sample_calls.hpp"
#include "util/console/log.hpp"

using namespace cudabpf;

namespace {

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Reads what is drawn, until it ends with this.
std::string drawn_to(PseudoTerminal& terminal, std::string_view end) {
  std::string text;
  for (int i = 0; i < 200 && !text.ends_with(end); i++) {
    wait_ms(10);
    text += terminal.drawn();
  }
  return text;
}

auto took(auto&& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::steady_clock::now() - begin;
}

// What became of lines and warnings that all say the same.
struct Seen {
  std::size_t lines = 0, messages = 0, left_out = 0;

  Seen() = default;
  Seen(std::string_view drawn, std::string_view said) {
    for (std::size_t at = 0, end; (end = drawn.find('\n', at)) != std::string_view::npos;
         at = end + 1) {
      std::string text(drawn.substr(at, end - at));
      std::size_t warning = text.find("warning: ");
      // A writer that starts late says so twice.
      if (text.find("could not be shown here") != std::string::npos)
        left_out += number_at(text, warning + 9);
      else if (warning != std::string::npos)
        messages++;
      else if (text.find(said) != std::string::npos)
        lines++;
    }
  }

 private:
  static std::size_t number_at(std::string text, std::size_t at) {
    std::erase(text, ',');
    return std::stoul(text.substr(at));
  }
};

}  // namespace

TEST_CASE("The status line is drawn at most five times a second, and goes away") {
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  Variable columns("COLUMNS", nullptr);
  Screen screen(terminal.fd());
  StatusSink status(screen, [] { return std::uint64_t{2048}; });
  status.begin({});
  Process process;
  status.process(process);
  status.call(SampleCall("cuInit"));
  status.lost({Loss::ring_entry, 5, 0, 0, ""});
  status.lost({Loss::ring_name, 9, 0, 0, ""});  // it loses nothing
  status.flush();
  std::string drawn = drawn_to(terminal, "\033[K");
  CHECK(drawn.starts_with("\rcudabpf: tracing for 00:00  1 calls  "));
  CHECK(drawn.ends_with("/s  1 process  2.00 KiB  5 lost\033[K"));
  status.call(SampleCall("cuInit"));
  status.flush();
  wait_ms(50);
  CHECK(terminal.drawn().empty());
  wait_ms(200);
  status.flush();
  CHECK(drawn_to(terminal, "\033[K").starts_with("\rcudabpf: tracing for 00:00  2 calls  "));

  // A message takes its place, and the line goes below.
  log::warning("the disk is full\033[2J");
  drawn = drawn_to(terminal, "lost\033[K");
  CHECK(drawn.starts_with("\r\033[Kcudabpf: warning: the disk is full?[2J\r\n\rcudabpf: tracing"));
  status.end({});
  CHECK(drawn_to(terminal, "\r\033[K") == "\r\033[K");
}

TEST_CASE("A terminal of any width is drawn upon") {
  Variable columns("COLUMNS", nullptr);
  for (unsigned short width : std::initializer_list<unsigned short>{1, 2, 3, 20}) {
    PseudoTerminal terminal(width);
    if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
    Screen screen(terminal.fd());
    screen.set_status("東 and more than that");
    std::string drawn = width > 1 ? drawn_to(terminal, "\033[K") : terminal.drawn();
    if (width == 1) CHECK(drawn.empty());
    if (width == 2) CHECK(drawn.empty());
    if (width == 3) CHECK(drawn == "\r東\033[K");
    if (width == 20) CHECK(drawn == "\r東 and more than th\033[K");
  }
}

TEST_CASE("A terminal that is stopped is not waited for, and what it missed is counted") {
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  Variable columns("COLUMNS", nullptr);
  REQUIRE(::tcflow(terminal.fd(), TCOOFF) == 0);  // as by Ctrl-S
  Screen screen(terminal.fd());
  const std::string line(99, 'x');
  std::size_t offered = 0, refused = 0;
  auto time = took([&] {
    for (int i = 0; i < 100'000; i++) {
      (screen.offer(line + "\n") ? offered : refused)++;
      screen.set_status(std::to_string(i));
    }
    for (int i = 0; i < 20'000; i++) log::warning("{}", line);
  });
  CHECK(time < std::chrono::seconds(20));  // not for ever, even on a busy machine
  CHECK(refused > 90'000);
  REQUIRE(::tcflow(terminal.fd(), TCOON) == 0);
  std::string drawn;
  Seen seen;
  for (int i = 0; i < 500 && seen.messages + seen.left_out < 20'000; i++) {
    wait_ms(10);
    drawn += terminal.drawn();
    seen = Seen(drawn, line);
  }
  CHECK(seen.lines == offered);
  CHECK(seen.messages + seen.left_out == 20'000);
}

TEST_CASE("The end waits for a stopped terminal until a signal comes") {
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  Variable columns("COLUMNS", nullptr);
  Fd hurry(::eventfd(0, EFD_CLOEXEC));
  REQUIRE(::tcflow(terminal.fd(), TCOOFF) == 0);
  std::atomic<bool> went_on = false;
  std::thread goes_on([&] {
    wait_ms(300);
    went_on = true;
    ::tcflow(terminal.fd(), TCOON);
  });
  Screen(terminal.fd(), hurry.get()).show("the end\n");
  CHECK(went_on);
  goes_on.join();
  CHECK(terminal.drawn() == "the end\r\n");

  REQUIRE(::tcflow(terminal.fd(), TCOOFF) == 0);
  std::uint64_t one = 1;
  REQUIRE(::write(hurry.get(), &one, sizeof(one)) == sizeof(one));
  int left = ::dup(terminal.fd());  // for the writer that is not waited for
  CHECK(took([&] { Screen(left, hurry.get()).show("never seen\n"); }) < std::chrono::seconds(2));
  ::tcflow(terminal.fd(), TCOON);
  // A busy machine may be slow now and then, but not every time.
  auto fastest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; i++)
    fastest =
        std::min(fastest, took([&] { Screen(terminal.fd(), hurry.get()).show("operations\n"); }));
  CHECK(fastest < std::chrono::milliseconds(400));
}

TEST_CASE(
    "Nothing is drawn where there is no terminal, and a full or closed one holds nothing up") {
  int fds[2];
  REQUIRE(::pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
  Fd reader(fds[0]), writer(fds[1]);
  {
    Screen screen(writer.get());
    StatusSink status(screen, [] { return std::uint64_t{0}; });
    status.begin({});
    status.call(SampleCall("cuInit"));
    status.flush();
    status.end({});
  }
  char byte;
  CHECK(::read(reader.get(), &byte, 1) < 0);
  reader.reset();  // the writer blocks all signals, so SIGPIPE does not end it
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  for (int fd : {writer.get(), full.get(), -1}) {
    Screen screen(fd);
    CHECK(screen.offer("a\n"));
    screen.show("b\n");
  }
}

TEST_CASE("Messages that come while another draws are kept, and written afterwards") {
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  Variable columns("COLUMNS", nullptr);
  Screen screen(terminal.fd());
  log::warning("before");
  std::string shown;
  screen.hold([&](std::string_view lines) { shown += lines; });
  CHECK(terminal.drawn() == "cudabpf: warning: before\r\n");
  log::warning("meanwhile");
  screen.show("another line\n");
  wait_ms(50);
  CHECK(terminal.drawn().empty());
  CHECK(shown == "cudabpf: warning: meanwhile\nanother line\n");
  screen.release();
  log::warning("afterwards");
  CHECK(drawn_to(terminal, "afterwards\r\n") ==
        "cudabpf: warning: meanwhile\r\nanother line\r\ncudabpf: warning: afterwards\r\n");
  CHECK(shown == "cudabpf: warning: meanwhile\nanother line\n");
}
