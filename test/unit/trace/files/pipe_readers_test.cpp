// A program that reads the trace from a pipe may be slow, or go away.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;

namespace {

class Pipe {
 public:
  Pipe() {
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    reader = Fd(fds[0]);
    writer = Fd(fds[1]);
  }
  Fd reader, writer;
};

}  // namespace

TEST_CASE("A reader that goes away ends the output, not the program") {
  QuietStderr quiet;
  Pipe pipe;
  auto sink = open_sink(to_stream(pipe.writer.get()));
  pipe.writer.reset();
  sink->begin(session_now());
  char byte;
  REQUIRE(::read(pipe.reader.get(), &byte, 1) == 1);
  CHECK(!sink->reader_gone());
  pipe.reader.reset();
  make_calls(*sink, 1, 100);
  flush_for(*sink, 150);
  CHECK(sink->reader_gone());
  make_calls(*sink, 101, 11);
  sink->end(totals_of(111));
  CHECK(sink->written().lost == 111);
  CHECK(!sink->written().complete);
}

TEST_CASE("A pipe that is not read is not waited for once there is a hurry") {
  QuietStderr quiet;
  Pipe pipe;
  Fd hurry(::eventfd(0, EFD_CLOEXEC));
  OutputOptions options = to_stream(pipe.writer.get());
  options.hurry_fd = hurry.get();
  auto sink = open_sink(options);
  sink->begin(session_now());
  // More than all blocks hold: the thread that makes the calls waits, as the ring's reader does.
  std::thread hurries([&] {
    wait_ms(300);
    std::uint64_t one = 1;
    CHECK(::write(hurry.get(), &one, sizeof(one)) == sizeof(one));
  });
  auto begin = now_ns(CLOCK_MONOTONIC);
  constexpr std::uint64_t MANY = 100'000;
  make_calls(*sink, 1, MANY);
  sink->end(totals_of(MANY));
  hurries.join();
  auto took = now_ns(CLOCK_MONOTONIC) - begin;
  CHECK(took > 2'000'000'000);
  CHECK(took < 20'000'000'000);  // not for ever
  TraceWritten written = sink->written();
  CHECK(!written.complete);
  sink.reset();
  REQUIRE((::fcntl(pipe.writer.get(), F_GETFL) & O_NONBLOCK) == 0);  // others share it
  pipe.writer.reset();
  std::string text(1 << 20, '\0');
  ssize_t size = ::read(pipe.reader.get(), text.data(), text.size());
  REQUIRE(size > 0);
  text.resize(static_cast<std::size_t>(size));
  auto whole = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
  CHECK(whole - 1 + written.lost == MANY);  // the header is not a call
}

TEST_CASE("A slow reader gets every line though there is a hurry") {
  Pipe pipe;
  std::string text;
  std::thread reader([&] {
    std::string buffer(1 << 16, '\0');
    for (ssize_t size; (size = ::read(pipe.reader.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer, 0, static_cast<std::size_t>(size));
      wait_ms(100);
    }
  });
  Fd hurry(::eventfd(1, EFD_CLOEXEC));
  OutputOptions options = to_stream(pipe.writer.get());
  options.hurry_fd = hurry.get();
  auto sink = open_sink(options);
  pipe.writer.reset();
  sink->begin(session_now());
  Process process;
  process.cmdline = std::string(4000, 'x');  // few lines, so that the test need not read many
  constexpr int MANY = 380;
  for (int i = 0; i < MANY; i++) sink->process(process);  // some 2.4 s; 2 s of silence are too long
  sink->end({});
  CHECK(sink->written().complete);
  sink.reset();
  reader.join();
  CHECK(trace_lines(text).size() == MANY + 2);
}

TEST_CASE("A slow reader of a pipe that does not block gets every line") {
  Pipe pipe;
  REQUIRE(::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK) == 0);
  std::string text;
  std::thread reader([&] {
    char buffer[10'000];
    wait_ms(50);
    for (ssize_t size; (size = ::read(pipe.reader.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<std::size_t>(size));
      if (text.size() < 200'000) wait_ms(1);
    }
  });
  {
    auto sink = open_sink(to_stream(pipe.writer.get()));
    pipe.writer.reset();
    sink->begin(session_now());
    make_calls(*sink, 1, 1500);
    sink->end(totals_of(1500));
    CHECK(sink->written().complete);
  }
  reader.join();
  auto lines = trace_lines(text);
  CHECK(lines.size() == 1502);
  CHECK(lines.back()["losses"].empty());
}
