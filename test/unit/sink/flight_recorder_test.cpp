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

#include "support/recording.hpp"

using namespace recording;

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
  look(recorder);  // notices
  look(recorder);
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
    look(recorder);
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
  look(recorder);  // notices
  look(recorder);
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
