#include "sink/flight_recorder.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;
using Types = std::vector<std::string>;

namespace {

// A recorder, and what it reported of its dumps.
class Recording {
 public:
  explicit Recording(const fs::path& path, FlightRecorder::Options options = {}) {
    options.path = [path] { return path.string(); };
    auto opened = FlightRecorder::open(
        std::move(options), [this](const Result<FlightRecorder::Dump>& dump) { note(dump); });
    if (!opened) FAIL(opened.error().message);
    recorder = std::move(*opened);
  }

  void note(const Result<FlightRecorder::Dump>& dump) {
    std::lock_guard lock(mutex_);
    (dump ? dumps.emplace_back(*dump), 0 : (errors.push_back(dump.error()), 0));
    came_.notify_all();
  }

  // The reader's thread goes on until this many dumps were reported.
  bool flush_until(std::size_t reported) {
    for (int i = 0; i < 1000; i++) {
      recorder->flush();
      std::unique_lock lock(mutex_);
      if (came_.wait_for(lock, std::chrono::milliseconds(10),
                         [&] { return dumps.size() + errors.size() >= reported; }))
        return true;
    }
    return false;
  }
  FlightRecorder::Dump dump() {
    std::size_t before = dumps.size();
    recorder->write_soon();
    REQUIRE(flush_until(dumps.size() + errors.size() + 1));
    REQUIRE(dumps.size() == before + 1);
    return dumps.back();
  }

  std::unique_ptr<FlightRecorder> recorder;
  std::vector<FlightRecorder::Dump> dumps;
  std::vector<Error> errors;

 private:
  std::mutex mutex_;
  std::condition_variable came_;
};

void make_calls(Sink& sink, std::uint64_t first, std::uint64_t count, int result = 0) {
  std::mt19937_64 random(first);
  SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
  for (std::uint64_t id = first; id < first + count; id++) {
    call.id = id;
    call.details.ptr = random();
    call.result = result;
    sink.call(call);
  }
}

std::vector<nlohmann::json> lines_in(const fs::path& path) {
  return trace_lines(output_of("zstd -dc " + path.string()));
}

Process process_of(std::uint32_t pid, Process::Op op, const std::string& comm) {
  Process process;
  process.op = op;
  process.ts = pid;
  process.pid = pid;
  process.comm = comm;
  process.container_runtime = "docker";
  process.container_id = "8f2b";
  return process;
}

// As the file's own last line says, and as it holds.
void check_books(const std::vector<nlohmann::json>& lines) {
  REQUIRE(lines.size() >= 2);
  const auto &header = lines.front(), &end = lines.back();
  CHECK(header["type"] == "trace");
  CHECK(end["type"] == "end");
  CHECK(end["lines"] == lines.size());
  CHECK(std::count_if(lines.begin(), lines.end(), [](const auto& line) {
          return line.contains("id");
        }) == end["calls"].get<std::ptrdiff_t>());
  CHECK(end["ts"].get<std::uint64_t>() ==
        header.value("since", std::uint64_t{0}) + end["duration_ns"].get<std::uint64_t>());
  CHECK_FALSE(header.contains("part"));
  CHECK_FALSE(end.contains("part"));
  CHECK_FALSE(end.contains("last"));
  CHECK_FALSE(end.contains("accounts"));
}

// Of a dump of nothing but many calls: the header, the first and the last call and the end. Of all
// others the ids are checked, and one in fifty is parsed: to parse all takes most of a test's time.
std::vector<nlohmann::json> few_lines_in(const fs::path& path) {
  constexpr std::string_view ID = "{\"id\":";
  std::string text = output_of("zstd -dc " + path.string()), parsed;
  std::size_t lines = 0, calls = 0, begin = 0, last = 0;
  std::string_view line, before;
  for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    before = std::exchange(line, std::string_view(text).substr(begin, end + 1 - begin));
    if (lines++ % 50 < 2) parsed += line;
    if (!line.starts_with(ID)) continue;
    std::size_t id = 0;
    std::from_chars(line.data() + ID.size(), line.data() + line.size(), id);
    if ((calls++ && id != last + 1) || !line.ends_with("}\n"))
      FAIL("after " << last << ": " << line);
    last = id;
  }
  REQUIRE(begin == text.size());
  auto all = trace_lines(parsed.append(before).append(line));
  std::vector<nlohmann::json> few{all[0], all[1], *(all.end() - 2), all.back()};
  CHECK(few.back()["lines"] == lines);
  CHECK(few.back()["calls"] == calls);
  CHECK(lines == calls + 2);
  few.back()["lines"] = few.size();
  few.back()["calls"] = 2;
  check_books(few);
  few.back()["lines"] = lines;
  few.back()["calls"] = calls;
  return few;
}

FlightRecorder::Options short_ones() {
  FlightRecorder::Options options;
  options.keep_ns = FlightRecorder::SHORTEST_NS;
  return options;
}

}  // namespace

TEST_CASE("A dump is a trace of all that is kept, and recording goes on") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl.zst";
  Recording recording(path);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  recorder.process(process_of(7, Process::Op::start, "python"));
  make_calls(recorder, 1, 3);
  LossEvent loss;
  loss.count = 5;
  recorder.lost(loss);
  FlightRecorder::Dump dump = recording.dump();
  CHECK(dump.path == path);
  CHECK(dump.because == "asked");
  CHECK(dump.since_ns == 0);
  CHECK(dump.covered_ns > 0);
  CHECK(dump.events == 5);
  CHECK(dump.bytes == fs::file_size(path));
  CHECK_FALSE(dump.cut);
  auto lines = lines_in(path);
  check_books(lines);
  CHECK(types_of(lines) == Types{"trace", "process", "memory", "memory", "memory", "lost", "end"});
  CHECK_FALSE(lines.front().contains("since"));
  CHECK(lines.back()["reason"] == "asked");
  CHECK(lines.back()["losses"] == nlohmann::json{{"ring_full_entry", 5}});
  std::string first = file_text(path);

  make_calls(recorder, 4, 2);
  dump = recording.dump();
  CHECK(dump.path == folder.path() / "t-2.jsonl.zst");
  lines = lines_in(dump.path);
  check_books(lines);
  CHECK(lines.back()["calls"] == 5);  // parts that ended in between are one trace
  CHECK(types_of(lines) ==
        Types{"trace", "process", "memory", "memory", "memory", "lost", "memory", "memory", "end"});
  recorder.end({});
  CHECK(file_text(path) == first);
  CHECK(recording.dumps.size() == 2);
  CHECK(recording.errors.empty());
}

TEST_CASE("Recording goes on while a dump is written, which has what was kept when it began") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 20'000);
  recorder.write_soon();
  recorder.flush();  // notices
  recorder.flush();
  make_calls(recorder, 20'001, 20'000);
  REQUIRE(recording.flush_until(1));
  auto first = few_lines_in(recording.dumps.at(0).path);
  CHECK(first.back()["calls"] == 20'000);
  auto all = few_lines_in(recording.dump().path);
  CHECK(all.back()["calls"] == 40'000);
  recorder.end({});
}

TEST_CASE("Nothing is a trace, too") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  recording.recorder->begin(session_now());
  FlightRecorder::Dump dump = recording.dump();
  CHECK(dump.events == 0);
  auto lines = lines_in(dump.path);
  check_books(lines);
  CHECK(types_of(lines) == Types{"trace", "end"});
}

TEST_CASE("Without a request, nothing is written") {
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  recording.recorder->begin(session_now());
  make_calls(*recording.recorder, 1, 10, 2);  // failures, for which no dump is wanted
  recording.recorder->end({});
  CHECK(fs::is_empty(folder.path()));
  CHECK(recording.dumps.empty());
}

TEST_CASE("What is older than the time goes; processes that run since then are reported again") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst", short_ones());
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  recorder.process(process_of(7, Process::Op::fork, "sh"));
  recorder.process(process_of(7, Process::Op::exec, "python"));
  recorder.process(process_of(8, Process::Op::start, "gone"));
  recorder.process(process_of(8, Process::Op::exit, "gone"));
  Library library;
  library.path = "/lib/libcuda.so.2";
  recorder.library(library);
  std::uint64_t id = 1;
  for (int i = 0; i < 250; i++) {
    make_calls(recorder, id++, 1);
    wait_ms(10);
    recorder.flush();
  }
  FlightRecorder::Dump dump = recording.dump();
  CHECK(dump.covered_ns >= FlightRecorder::SHORTEST_NS);
  CHECK(dump.since_ns > 0);
  CHECK_FALSE(dump.cut);
  auto lines = lines_in(dump.path);
  check_books(lines);
  const auto& header = lines.front();
  CHECK(header["since"] == dump.since_ns);
  CHECK(header["libraries"].size() == 1);
  REQUIRE(types_of(lines)[1] == "process");
  CHECK(lines[1]["op"] == "start");
  CHECK(lines[1]["ts"] == dump.since_ns);
  CHECK(lines[1]["pid"] == 7);
  CHECK(lines[1]["comm"] == "python");
  CHECK(lines[1]["container"]["id"] == "8f2b");
  CHECK(types_of(lines)[2] == "memory");
  // The newest calls without a gap, and not those that came before.
  std::uint64_t next = lines[2]["id"];
  CHECK(next > 1);
  for (std::size_t at = 2; at + 1 < lines.size(); at++) CHECK(lines[at]["id"] == next++);
  CHECK(next == id);
  CHECK(dump.events == lines.size() - 3);
  recorder.end({});
}

TEST_CASE("Memory that is short shortens the time, and that is reported") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.most_bytes = FlightRecorder::LEAST_BYTES;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  constexpr std::uint64_t COUNT = 200'000;
  make_calls(recorder, 1, COUNT);
  FlightRecorder::Dump dump = recording.dump();
  CHECK(dump.cut);
  CHECK(dump.bytes <= FlightRecorder::LEAST_BYTES + (64 << 10));
  CHECK(dump.bytes > FlightRecorder::LEAST_BYTES / 2);
  CHECK(dump.since_ns > 0);
  auto lines = few_lines_in(dump.path);
  CHECK(lines.back()["lines"] < COUNT);
  CHECK(lines[2]["id"] == COUNT);
  recorder.end({});
}

TEST_CASE("Requests while a dump is written get one dump together") {
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 1000);
  for (int i = 0; i < 1000; i++) recorder.write_soon();
  recorder.flush();  // notices
  recorder.flush();
  for (int i = 0; i < 1000; i++) recorder.write_soon();
  recorder.end({});
  CHECK(recording.dumps.size() == 2);
}

TEST_CASE("A dump that was requested is written though the end comes first") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  recording.recorder->begin(session_now());
  make_calls(*recording.recorder, 1, 10);
  recording.recorder->write_soon();
  recording.recorder->end(totals_of(10));
  REQUIRE(recording.dumps.size() == 1);
  auto lines = lines_in(recording.dumps[0].path);
  check_books(lines);
  CHECK(lines.back()["calls"] == 10);
}

TEST_CASE("The first error makes a dump, which has what follows") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.on_error = true;
  options.after_error_ns = 200'000'000;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  constexpr int NOT_READY = 600, DEINITIALIZED = 4, OUT_OF_MEMORY = 2;
  make_calls(recorder, 1, 2);
  make_calls(recorder, 3, 1, NOT_READY);
  make_calls(recorder, 4, 1, DEINITIALIZED);
  wait_ms(250);
  recorder.flush();
  SECTION("A call that fails") {
    make_calls(recorder, 5, 1, OUT_OF_MEMORY);
    recorder.flush();
    make_calls(recorder, 6, 1);
    REQUIRE(recording.flush_until(1));
    make_calls(recorder, 7, 1, OUT_OF_MEMORY);
    wait_ms(250);
    recorder.flush();
    recorder.end({});
    REQUIRE(recording.dumps.size() == 1);
    CHECK(recording.dumps[0].because == "error");
    auto lines = lines_in(recording.dumps[0].path);
    check_books(lines);
    CHECK(lines.back()["reason"] == "error");
    CHECK(lines.back()["calls"] == 6);
    CHECK(lines[5]["error"] == "CUDA_ERROR_OUT_OF_MEMORY");
  }
  SECTION("An Xid") {
    recorder.gpu_error({});
    REQUIRE(recording.flush_until(1));
    CHECK(types_of(lines_in(recording.dumps.at(0).path)).at(5) == "error");
    recorder.end({});
  }
  SECTION("A process that crashes, just before the end") {
    Process process = process_of(7, Process::Op::exit, "python");
    process.signal = SIGTERM;
    recorder.process(process);
    wait_ms(250);
    recorder.flush();
    process.signal = SIGSEGV;
    recorder.process(process);
    recorder.end({});
    REQUIRE(recording.dumps.size() == 1);
    CHECK(lines_in(recording.dumps[0].path).back()["reason"] == "error");
  }
  CHECK(recording.errors.empty());
}

TEST_CASE("A dump that cannot be written leaves nothing, and what is kept stays") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  if (::geteuid() == 0) SKIP("root may write anywhere");
  TemporaryFolder folder;
  auto inner = folder.path() / "inner";
  fs::create_directory(inner);
  Recording recording(inner / "t.jsonl.zst");
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 3);
  fs::permissions(inner, fs::perms::owner_read | fs::perms::owner_exec);
  recorder.write_soon();
  REQUIRE(recording.flush_until(1));
  REQUIRE(recording.errors.size() == 1);
  CHECK(recording.errors[0].message.find("Permission denied") != std::string::npos);
  CHECK(fs::is_empty(inner));
  fs::permissions(inner, fs::perms::owner_all);
  FlightRecorder::Dump dump = recording.dump();
  CHECK(lines_in(dump.path).back()["calls"] == 3);
  recorder.end({});
}

TEST_CASE("A dump that does not fit on the disk is not left half written") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  Recording recording(folder.path() / "t.jsonl.zst");
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 10'000);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  recorder.write_soon();
  bool reported = recording.flush_until(1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE(reported);
  REQUIRE(recording.errors.size() == 1);
  CHECK(recording.errors[0].message.find("File too large") != std::string::npos);
  CHECK(fs::is_empty(folder.path()));
  make_calls(recorder, 10'001, 1);
  check_books(lines_in(recording.dump().path));
  recorder.end({});
}

TEST_CASE("Dumps replace nothing") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl.zst";
  folder.write("t.jsonl.zst", "of others");
  folder.write("t-2.jsonl.zst", "of others");
  Recording recording(path);
  recording.recorder->begin(session_now());
  CHECK(recording.dump().path == folder.path() / "t-3.jsonl.zst");
  CHECK(file_text(path) == "of others");
  recording.recorder->end({});
}

TEST_CASE("A path at which no dump could be written is refused at once") {
  FlightRecorder::Options options;
  options.path = [] { return std::string("/nonexistent/t.jsonl.zst"); };
  auto opened = FlightRecorder::open(options, {});
  REQUIRE(!opened);
  CHECK(opened.error().message ==
        "cannot write a trace to /nonexistent: No such file or directory");
  CHECK(opened.error().exit_code == exit_code::OUTPUT_FAILED);
}
