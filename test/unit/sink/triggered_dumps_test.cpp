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
  recorder.flush();
  wait_ms(150);
  recorder.flush();
  CHECK(recording.dumps.size() == 1);
  make_calls(recorder, 3, 1, OUT_OF_MEMORY);
  REQUIRE(recording.flush_until(2));
  wait_ms(150);
  make_calls(recorder, 4, 1, OUT_OF_MEMORY);
  recorder.flush();
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
