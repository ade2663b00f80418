// Errors, losses and what is not known, as `cudabpf top` shows them.
#include <catch2/catch_test_macros.hpp>
#include <string>

#include "sink/top/top_figures.hpp"
#include "sink/top/top_text.hpp"
#include "support/sample_calls.hpp"
#include "support/units.hpp"
#include "support/watched.hpp"

using namespace cudabpf;

TEST_CASE("top counts an error that is repeated, and names its process") {
  TopModel model;
  begins(model, 7, "app");
  begins(model, 8, "other");
  auto fails = [&](std::uint32_t pid, const char* function, std::uint64_t ts, int result) {
    SampleCall call(function);
    call.pid = pid;
    call.ts = ts;
    call.fail(result);
    model.call(call);
  };
  for (std::uint64_t ts = 1; ts <= 1000; ts++) fails(7, "cuMemAlloc_v2", ts, 2);
  fails(8, "cuMemAlloc_v2", 1001, 2);
  fails(7, "cuMemAlloc_v2", 1002, 1);
  fails(7, "cuMemAlloc_v2", 1003, 2);
  auto errors = model.interval(SECOND).errors;
  REQUIRE(errors.size() == 3);
  auto check = [&](std::size_t i, std::uint64_t ts, std::uint32_t pid, const char* name,
                   const char* what, std::uint64_t count) {
    CHECK(errors[i].ts == ts);
    CHECK(errors[i].pid == pid);
    CHECK(errors[i].name == name);
    CHECK(errors[i].what == what);
    CHECK(errors[i].count == count);
  };
  check(0, 1001, 8, "other", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", 1);
  check(1, 1002, 7, "app", "cuMemAlloc: CUDA_ERROR_INVALID_VALUE", 1);
  check(2, 1003, 7, "app", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", 1001);
  model.begin_next(SECOND);
  fails(7, "cuMemAlloc_v2", 1004, 2);
  CHECK(model.interval(2 * SECOND).errors.back().count == 1002);
}

TEST_CASE("top puts processes that have ended behind the others") {
  TopModel model;
  for (std::uint32_t pid : {7u, 8u, 9u}) begins(model, pid, "app");
  for (int i = 0; i < 5; i++) launch(model, 8);
  launch(model, 7);
  Process end;
  end.op = Process::Op::exit;
  end.pid = 8;
  model.process(end);
  auto processes = model.interval(SECOND).processes;
  REQUIRE(processes.size() == 3);
  CHECK(processes[0].pid == 7);
  CHECK(processes[1].pid == 9);
  CHECK(processes[2].pid == 8);
  CHECK(processes[2].ended);
}

TEST_CASE("top does not say that a process holds nothing that it has not seen to begin") {
  TopModel model;
  begins(model, 7, "app");
  Process before;
  before.op = Process::Op::start;
  before.pid = 8;
  model.process(before);
  auto processes = model.interval(SECOND).processes;
  REQUIRE(processes.size() == 2);
  CHECK_FALSE(processes[0].holds_unseen);
  CHECK(processes[1].holds_unseen);
  CHECK(held_text(processes[0], 0).empty());
  CHECK(held_text(processes[1], 0) == "?");
}

TEST_CASE("top says once what helps against a loss, and no books that balance") {
  TopModel model;
  LossEvent loss;
  loss.reason = Loss::ring_entry;
  loss.count = 12345;
  model.lost(loss);
  TopInterval interval = model.interval(SECOND);
  interval.books.emplace();
  interval.books->records = {.entered = 9, .emitted = 7, .dropped = 2, .received = 7};
  TopText text;
  std::string first = text.text(interval, Terminal{});
  CHECK(first.find("LOST 12,345") != first.npos);
  CHECK(first.find("lost by ring_full_entry: The ring buffer was full") != first.npos);
  CHECK(first.find("entered") == first.npos);
  std::string second = text.text(interval, Terminal{});
  CHECK(second.find("LOST 12,345") != second.npos);
  CHECK(second.find("lost by") == second.npos);
  CHECK(top_end_text({}, {}, Terminal{}).empty());
  CHECK(
      top_end_text(interval, interval.lost, Terminal{}).starts_with("LOST 12,345\nlost by ring_f"));
  interval.books->records.received = 6;
  std::string broken = top_end_text(interval, {}, Terminal{});
  CHECK(broken.starts_with("The books do not balance"));
  CHECK(broken.find("2 dropped, 6") != broken.npos);
}
