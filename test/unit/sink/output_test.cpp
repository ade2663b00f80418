#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

#include "sink/jsonl.hpp"
#include "support/sample_calls.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;
using Types = std::vector<std::string>;

namespace {

constexpr std::uint64_t RETRY_NS = 50'000'000;

Session session_now() {
  Session session;
  session.version = "0.1.0";
  session.monotonic_ns = now_ns(CLOCK_MONOTONIC);
  return session;
}

std::unique_ptr<JsonlSink> open_sink(OutputOptions output) {
  JsonlOptions options;
  options.output = std::move(output);
  options.output.retry_ns = RETRY_NS;
  auto sink = JsonlSink::open(options);
  if (!sink) FAIL(sink.error().message);
  return std::move(*sink);
}

OutputOptions to_path(const fs::path& path) {
  OutputOptions output;
  output.path = path;
  return output;
}

OutputOptions to_stream(int fd) {
  OutputOptions output;
  output.path = "-";
  output.stream = fd;
  return output;
}

void make_calls(JsonlSink& sink, std::uint64_t first, std::uint64_t count) {
  SampleCall call("cuLaunchKernel", {0x55d0, 4096, 2, 1, 256, 1, 1, 1024, 0x7f00, 0x1234, 0});
  for (std::uint64_t id = first; id < first + count; id++) {
    call.id = id;
    sink.call(call);
  }
}

Totals totals_of(std::uint64_t calls) {
  Totals totals;
  totals.counts.calls = calls;
  totals.reason = "command ended";
  return totals;
}

void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Calls flush(), as every poll does, until what was there has surely been handed over.
void flush_for(JsonlSink& sink, int ms) {
  for (int i = 0; i <= ms; i += 10) {
    wait_ms(10);
    sink.flush();
  }
  wait_ms(20);
}

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

// While it lives, files cannot grow beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// Silences warnings about what the test causes.
class QuietStderr {
 public:
  QuietStderr() : saved_(::dup(2)) {
    Fd null(::open("/dev/null", O_WRONLY));
    ::dup2(null.get(), 2);
  }
  ~QuietStderr() { ::dup2(saved_.get(), 2); }

 private:
  Fd saved_;
};

}  // namespace

TEST_CASE("A trace is a header, the events in order, and an end") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  Process process;
  process.pid = 7;
  sink->process(process);
  make_calls(*sink, 1, 2);
  sink->library({});
  LossEvent loss;
  loss.count = 3;
  sink->lost(loss);
  sink->end(totals_of(2));
  std::string text = file_text(path);
  auto lines = trace_lines(text);
  CHECK(types_of(lines) == Types{"trace", "process", "kernel", "kernel", "library", "lost", "end"});
  CHECK(lines.back()["lines"] == 7);
  TraceWritten written = sink->written();
  CHECK(written.path == path);
  CHECK(written.complete);
  CHECK(written.lines == 7);
  CHECK(written.bytes == text.size());
  CHECK(written.lost == 0);
  CHECK(written.files == 1);
}

TEST_CASE("Lines reach the file while nothing more happens") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  make_calls(*sink, 1, 3);
  flush_for(*sink, 150);
  CHECK(types_of(trace_lines(file_text(path))) == Types{"trace", "kernel", "kernel", "kernel"});
}

TEST_CASE("A trace larger than all blocks together arrives whole") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  constexpr std::uint64_t COUNT = 120'000;  // 24 MiB; there are 16 blocks of 1 MiB
  make_calls(*sink, 1, COUNT);
  sink->end(totals_of(COUNT));
  std::ifstream in(path);
  std::uint64_t next = 1, lines = 0;
  for (std::string line; std::getline(in, line); lines++) {
    auto expected = "{\"id\":" + std::to_string(next) + ",";
    if (line.starts_with(expected)) next++;
  }
  CHECK(lines == COUNT + 2);
  CHECK(next == COUNT + 1);
}

TEST_CASE("A text larger than a block is cut, and its line is written") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  Process process;
  process.cmdline = std::string(3 << 20, 'x');
  make_calls(*sink, 1, 1);
  sink->process(process);
  make_calls(*sink, 2, 1);
  sink->end(totals_of(2));
  auto lines = trace_lines(file_text(path));
  CHECK(types_of(lines) == Types{"trace", "kernel", "process", "kernel", "end"});
  CHECK(lines[2]["cmdline"].get<std::string>() == std::string(4096, 'x') + "…");
}

TEST_CASE("Where a trace may be written") {
  TemporaryFolder folder;
  auto path = (folder.path() / "t.jsonl").string();
  JsonlOptions options;
  options.output.path = path;
  auto refused = [&] {
    auto sink = JsonlSink::open(options);
    REQUIRE(!sink);
    CHECK(!sink.error().hint.empty());
    return sink.error().message;
  };
  SECTION("an old file is replaced, not written into: a link to it keeps what it had") {
    folder.write("t.jsonl", "old\n");
    fs::create_hard_link(path, folder.path() / "other");
    REQUIRE(JsonlSink::open(options));
    CHECK(file_text(folder.path() / "other") == "old\n");
    CHECK(file_text(path).empty());
  }
  SECTION("the umask says who may read it: a trace names command lines") {
    mode_t before = ::umask(0027);
    REQUIRE(JsonlSink::open(options));
    ::umask(before);
    CHECK(fs::status(path).permissions() == static_cast<fs::perms>(0640));
  }
  SECTION("a symbolic link is not followed") {
    folder.write("target", "precious\n");
    folder.link("t.jsonl", "target");
    CHECK(refused() == "cannot write to " + path + ": it is there and is not a regular file");
    CHECK(file_text(folder.path() / "target") == "precious\n");
    folder.link("dangling", "nothing");
    options.output.path = folder.path() / "dangling";
    CHECK(refused().ends_with("is not a regular file"));
    CHECK(!fs::exists(folder.path() / "nothing"));
  }
  SECTION("a folder or a device is left alone") {
    options.output.path = folder.path();
    CHECK(refused().ends_with("is not a regular file"));
    options.output.path = "/dev/null";
    CHECK(refused().ends_with("is not a regular file"));
  }
  SECTION("a missing folder is made only where cudabpf chose it") {
    options.output.path = folder.path() / "traces" / "t.jsonl";
    CHECK(refused() == "cannot create " + options.output.path + ": No such file or directory");
    options.output.own_choice = true;
    REQUIRE(JsonlSink::open(options));
    CHECK(fs::exists(options.output.path));
  }
  SECTION("standard output cannot be rotated") {
    options.output.path = "-";
    options.rotate_size = 1 << 20;
    CHECK(refused() == "standard output cannot be rotated");
  }
}

TEST_CASE("A name of cudabpf's own choice never replaces a file") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.output.own_choice = true;
  std::vector<std::unique_ptr<JsonlSink>> at_once;
  for (const char* name : {"t.jsonl", "t-2.jsonl", "t-3.jsonl"}) {
    auto sink = JsonlSink::open(options);
    REQUIRE(sink);
    CHECK((*sink)->written().path == folder.path() / name);
    at_once.push_back(std::move(*sink));
  }
}

TEST_CASE("Root does not follow a link to a folder that somebody else made") {
  if (::geteuid() != 0) SKIP("only root is somebody else than the owner here");
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "target");
  folder.link("traces", "target");
  JsonlOptions options;
  options.output.path = folder.path() / "traces" / "t.jsonl";
  options.output.own_choice = true;
  std::string link = folder.path() / "traces";
  REQUIRE(::lchown(link.c_str(), 12345, 23456) == 0);
  CHECK(!JsonlSink::open(options));
  CHECK(fs::is_empty(folder.path() / "target"));
  REQUIRE(::lchown(link.c_str(), 0, 0) == 0);
  CHECK(JsonlSink::open(options));
}

TEST_CASE("A path that names what is open is written to as it stands") {
  TemporaryFolder folder;
  folder.write("t", "before\n");
  Fd file(::open((folder.path() / "t").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  REQUIRE(file);
  for (const char* folder_of : {"/dev/fd/", "/proc/self/fd/"}) {
    auto opened = TraceFile::create(folder_of + std::to_string(file.get()), true);
    REQUIRE(opened);
    CHECK(opened->is_stream());
    CHECK(opened->append_whole("line\n"));
  }
  CHECK(file_text(folder.path() / "t") == "before\nline\nline\n");
  for (const char* none : {"/dev/fd/-1", "/dev/fd/", "/dev/fd/999999", "/dev/fd/1x"})
    CHECK(!TraceFile::create(none, true));
}

TEST_CASE("Nothing can be written: all is counted, and the trace is known to be incomplete") {
  QuietStderr quiet;
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) SKIP("/dev/full cannot be opened");
  auto sink = open_sink(to_stream(full.get()));
  sink->begin(session_now());
  make_calls(*sink, 1, 10'000);
  sink->end(totals_of(10'000));
  TraceWritten written = sink->written();
  CHECK(!written.complete);
  CHECK(written.lost == 10'000);
  CHECK(written.lines == 0);
}

TEST_CASE("A full disk loses whole lines, says so, and is written to again") {
  QuietStderr quiet;
  TemporaryFolder folder;
  std::string name = GENERATE("t.jsonl", "t.jsonl.zst");
  bool compressed = name.ends_with(".zst");
  if (compressed && !is_installed("zstd")) SKIP("zstd is not installed");
  CAPTURE(name);
  auto path = folder.path() / name;
  auto text_now = [&] {
    return compressed ? output_of("zstd -dc " + path.string() + " 2>/dev/null") : file_text(path);
  };
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  std::uint64_t lost = 0;
  {
    // Room for the header and some calls; compressed, for the header alone.
    FileSizeLimit limit(compressed ? 500 : 50'000);
    make_calls(*sink, 1, 1000);
    flush_for(*sink, compressed ? 1400 : 150);
    auto lines = trace_lines(text_now());  // even now, every line is whole
    REQUIRE(lines.size() <= 1 + 1000);
    lost = 1 + 1000 - lines.size();
    CHECK(lost >= 500);
    if (!compressed) CHECK(lost < 1000);
    make_calls(*sink, 1001, 10);  // none of them fits
    flush_for(*sink, compressed ? 1400 : 150);
    lost += 10;
  }
  wait_ms(100);
  make_calls(*sink, 2001, 5);
  Totals totals = totals_of(1015);
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 4;
  sink->end(totals);

  auto lines = trace_lines(text_now());
  // Calls that were kept, and a line that says so wherever some are missing. On a nearly full disk,
  // that line may fit where no calls do, so there may be two of them.
  std::size_t kept = 1010 - lost;
  REQUIRE(lines.size() >= 1 + kept + 1 + 5 + 1);
  for (std::size_t i = 0; i < kept; i++) REQUIRE(lines[1 + i]["id"] == i + 1);
  std::uint64_t counted = 0;
  std::size_t at = 1 + kept;
  for (; lines[at]["type"] == "lost"; at++) {
    CHECK(lines[at]["reason"] == "output_failed");
    CHECK(lines[at]["severity"] == "lost");
    CHECK(lines[at]["since"] < lines[at]["until"]);
    counted += lines[at]["count"].get<std::uint64_t>();
  }
  CHECK(counted == lost);
  REQUIRE(lines.size() == at + 5 + 1);
  for (std::size_t i = 0; i < 5; i++) CHECK(lines[at + i]["id"] == 2001 + i);
  auto& end = lines.back();
  CHECK(end["losses"] == nlohmann::json({{"ring_full_entry", 4}, {"output_failed", lost}}));
  CHECK(end["lines"] == lines.size());
  CHECK(sink->written().complete);
  CHECK(sink->written().lost == lost);
  CHECK(sink->written().lines == lines.size());
}

TEST_CASE("A stream that cannot be cut back gets the rest of a line later") {
  QuietStderr quiet;
  TemporaryFolder folder;
  auto path = folder.path() / "redirected";
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(fd);
  auto sink = open_sink(to_stream(fd.get()));
  sink->begin(session_now());
  std::uint64_t lost = 0;
  {
    FileSizeLimit limit(20'003);
    make_calls(*sink, 1, 1000);
    flush_for(*sink, 150);
    std::string text = file_text(path);
    // The header's line has an end, that of the last call has none yet.
    lost = 1000 - static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    REQUIRE(text.size() == 20'003);
    REQUIRE(text.back() != '\n');
  }
  wait_ms(100);
  sink->end(totals_of(1000));
  auto lines = trace_lines(file_text(path));
  CHECK(lines.size() == 1 + (1000 - lost) + 1 + 1);
  CHECK(lines[lines.size() - 3]["id"] == 1000 - lost);
  CHECK(lines[lines.size() - 2]["count"] == lost);
  CHECK(lines.back()["lines"] == lines.size());
}

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

TEST_CASE("A pipe that nobody reads is not waited for once there is a hurry") {
  QuietStderr quiet;
  Pipe pipe;
  Fd hurry(::eventfd(0, EFD_CLOEXEC));
  OutputOptions options = to_stream(pipe.writer.get());
  options.hurry_fd = hurry.get();
  auto sink = open_sink(options);
  sink->begin(session_now());
  // More than all blocks hold: whoever makes the calls waits, as the ring's reader does.
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
  CHECK(took < 4'000'000'000);
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
  make_calls(*sink, 1, 8000);  // some 3 s
  sink->end(totals_of(8000));
  CHECK(sink->written().complete);
  sink.reset();
  reader.join();
  CHECK(trace_lines(text).size() == 8002);
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
    make_calls(*sink, 1, 5000);
    sink->end(totals_of(5000));
    CHECK(sink->written().complete);
  }
  reader.join();
  auto lines = trace_lines(text);
  CHECK(lines.size() == 5002);
  CHECK(lines.back()["losses"].empty());
}

TEST_CASE("A compressed trace that was cut off can be read up to there") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl.zst";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  make_calls(*sink, 1, 100);
  flush_for(*sink, 1500);
  // What is there if somebody kills cudabpf now.
  auto lines = trace_lines(output_of("zstd -dc " + path.string()));
  CHECK(lines.size() == 101);
  CHECK(lines.back()["id"] == 100);
  std::size_t whole_frames = file_text(path).size();
  make_calls(*sink, 101, 2000);
  sink->end(totals_of(2100));

  auto cut = folder.path() / "cut.zst";
  std::string bytes = file_text(path);
  REQUIRE(bytes.size() > whole_frames + 20);
  for (std::size_t size : {whole_frames + 1, whole_frames + 20, bytes.size() - 1}) {
    folder.write("cut.zst", std::string_view(bytes).substr(0, size));
    std::string text = output_of("zstd -dc " + cut.string() + " 2>/dev/null");
    auto first = trace_lines(text.substr(0, text.rfind('\n') + 1));
    CHECK(first.size() >= 101);
    CHECK(first[100]["id"] == 100);
  }
  CHECK(trace_lines(output_of("zstd -dc " + path.string())).size() == 2102);
}
