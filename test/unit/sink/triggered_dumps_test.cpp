#include <catch2/catch_test_macros.hpp>
#include <csignal>

#include "support/recording.hpp"

using namespace recording;

TEST_CASE("Triggered dumps keep their distance, and there is an end to them") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.triggers.on_error = true;
  options.after_trigger_ns = 0;
  options.between_ns = 100'000'000;
  options.most_dumps = 2;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  constexpr int OUT_OF_MEMORY = 2;
  make_calls(recorder, 1, 1, OUT_OF_MEMORY);
  REQUIRE(recording.flush_until(1));
  make_calls(recorder, 2, 1, OUT_OF_MEMORY);  // too soon
  look(recorder);
  wait_ms(150);
  look(recorder);
  CHECK(recording.dumps.size() == 1);
  make_calls(recorder, 3, 1, OUT_OF_MEMORY);
  REQUIRE(recording.flush_until(2));
  wait_ms(150);
  make_calls(recorder, 4, 1, OUT_OF_MEMORY);
  look(recorder);
  recorder.write_soon();
  REQUIRE(recording.flush_until(3));  // what is asked for is written all the same
  CHECK(recording.dumps[2].because == "asked");
  recorder.end({});
  CHECK(recording.dumps.size() == 3);
}

TEST_CASE("The first error makes a dump, which has what follows") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.triggers.on_error = true;
  options.after_trigger_ns = 200'000'000;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  constexpr int NOT_READY = 600, DEINITIALIZED = 4, OUT_OF_MEMORY = 2;
  make_calls(recorder, 1, 2);
  make_calls(recorder, 3, 1, NOT_READY);
  make_calls(recorder, 4, 1, DEINITIALIZED);
  wait_ms(250);
  look(recorder);
  SECTION("A call that fails") {
    make_calls(recorder, 5, 1, OUT_OF_MEMORY);
    look(recorder);
    make_calls(recorder, 6, 1);
    REQUIRE(recording.flush_until(1));
    make_calls(recorder, 7, 1, OUT_OF_MEMORY);
    wait_ms(250);
    look(recorder);
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
    look(recorder);
    process.signal = SIGSEGV;
    recorder.process(process);
    recorder.end({});
    REQUIRE(recording.dumps.size() == 1);
    CHECK(lines_in(recording.dumps[0].path).back()["reason"] == "error");
  }
  CHECK(recording.errors.empty());
}

TEST_CASE("A dump has calls that are open, and those after it have them once they have ended") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  constexpr std::uint64_t A_SECOND = 1'000'000'000;
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.triggers.longest_ns[static_cast<std::size_t>(CallClass::wait)] = A_SECOND;
  options.after_trigger_ns = 0;
  options.between_ns = 0;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 2);
  SampleCall wait("cuCtxSynchronize");
  wait.id = 3;
  wait.has_return = false;
  wait.unfinished = true;
  look(recorder, OpenNow({{&wait, A_SECOND}}));
  look(recorder);
  CHECK(recording.dumps.empty());
  look(recorder, OpenNow({{&wait, A_SECOND + 1}}));
  REQUIRE(recording.flush_until(1));
  CHECK(recording.dumps[0].because == "wait");
  CHECK(recording.dumps[0].events == 3);
  auto lines = lines_in(recording.dumps[0].path);
  check_books(lines);
  CHECK(types_of(lines) == Types{"trace", "memory", "memory", "sync", "end"});
  CHECK(lines[3]["id"] == 3);
  CHECK(lines[3]["unfinished"] == true);
  CHECK(lines.back()["unfinished_calls"] == 1);
  look(recorder, OpenNow({{&wait, 9 * A_SECOND}}));
  wait.has_return = true;
  wait.unfinished = false;
  wait.duration = 10 * A_SECOND;
  recorder.call(wait);
  look(recorder);
  look(recorder);
  CHECK(recording.dumps.size() == 1);  // it has triggered its dump
  recorder.write_soon();
  REQUIRE(recording.flush_until(2));
  lines = lines_in(recording.dumps[1].path);
  check_books(lines);
  CHECK(types_of(lines) == Types{"trace", "memory", "memory", "sync", "end"});
  CHECK_FALSE(lines[3].contains("unfinished"));
  CHECK(lines.back()["unfinished_calls"] == 0);
  recorder.end({});
}

TEST_CASE("A dump that others ask for keeps to the limits of triggers, and says so") {
  using Outcome = FlightRecorder::Asked::Outcome;
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  constexpr std::uint64_t AN_HOUR = 3'600'000'000'000;
  TemporaryFolder folder;
  FlightRecorder::Options options;
  options.after_trigger_ns = 0;
  options.between_ns = AN_HOUR;
  Recording recording(folder.path() / "t.jsonl.zst", options);
  FlightRecorder& recorder = *recording.recorder;
  recorder.begin(session_now());
  make_calls(recorder, 1, 1);
  CHECK(recorder.ask("post").outcome == Outcome::on_its_way);
  CHECK(recorder.ask("post").outcome == Outcome::on_its_way);
  REQUIRE(recording.flush_until(1));
  CHECK(lines_in(recording.dumps[0].path).back()["reason"] == "post");
  auto again = recorder.ask("post");
  CHECK(again.outcome == Outcome::too_soon);
  CHECK(again.wait_ns > 0);
  CHECK(again.wait_ns <= AN_HOUR);
  recorder.end({});
  CHECK(recorder.ask("post").outcome == Outcome::ended);
  CHECK(recording.dumps.size() == 1);
}

TEST_CASE("Dumps have a distance, and there is an end to them") {
  using Verdict = DumpLimits::Verdict;
  DumpLimits limits({.after_trigger_ns = 10, .between_ns = 100, .most = 2});
  CHECK(limits.due(1, true).empty());
  CHECK(limits.trigger("a", 1000).verdict == Verdict::on_its_way);
  CHECK(limits.trigger("b", 1001).verdict == Verdict::on_its_way);  // with the first
  CHECK(limits.due(1009, false).empty());
  CHECK(limits.due(1010, false) == "a");
  CHECK(limits.due(1011, false).empty());
  auto answer = limits.trigger("c", 1050);
  CHECK(answer.verdict == Verdict::too_soon);
  CHECK(answer.wait_ns == 60);
  CHECK(limits.trigger("d", 1110).verdict == Verdict::on_its_way);
  CHECK(limits.due(1111, true) == "d");
  CHECK(limits.trigger("e", 5000).verdict == Verdict::too_many);
}
