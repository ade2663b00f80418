#include "sink/top.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "sink/top_text.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000;

void launch(TopModel& model, std::uint32_t pid, std::uint64_t duration = 2500) {
  SampleCall call("cuLaunchKernel", std::vector<std::uint64_t>(11));
  call.pid = pid;
  call.duration = duration;
  model.call(call);
}

void begins(TopModel& model, std::uint32_t pid, const char* name) {
  Process process;
  process.op = Process::Op::exec;
  process.pid = pid;
  process.comm = name;
  model.process(process);
}

}  // namespace

TEST_CASE("what top tells of an interval is of that interval alone") {
  TopModel model;
  begins(model, 7, "app");
  launch(model, 7);
  launch(model, 7);
  SampleCall sync("cuCtxSynchronize");
  sync.pid = 7;
  model.call(sync);
  TopInterval first = model.interval(SECOND);
  REQUIRE(first.processes.size() == 1);
  CHECK(first.processes[0].name == "app");
  CHECK(first.all.calls == 3);
  CHECK(first.all.launches == 2);
  CHECK(first.all.time_ns == 7500);
  CHECK(first.all.waiting_ns == 2500);
  CHECK(first.end_ns - first.begin_ns == SECOND);

  CHECK(model.interval(2 * SECOND).all.calls == 3);  // not taken: it goes on
  model.begin_next(2 * SECOND);
  launch(model, 7);
  TopInterval second = model.interval(3 * SECOND);
  CHECK(second.all.calls == 1);
  CHECK(second.begin_ns == 2 * SECOND);
}

TEST_CASE("top takes calls that were added up as it takes single ones") {
  TopModel single, added;
  for (int i = 0; i < 5; i++) launch(single, 7);
  const Function& function = *find_function("cuLaunchKernel");
  added.add(7, function, function.op, {.count = 5, .time_ns = 5 * 2500});
  CHECK(top_json(single.interval(SECOND)) == top_json(added.interval(SECOND)));
}

TEST_CASE("top counts the time of a call within another once") {
  TopModel model;
  SampleCall outer("cuCtxSynchronize"), inner("cuCtxSynchronize");
  inner.parent = outer.id;
  model.call(inner);
  model.call(outer);
  CHECK(model.interval(SECOND).all.calls == 2);
  CHECK(model.interval(SECOND).all.time_ns == 2500);
}

TEST_CASE("top tells the memory that a process holds, and held at most") {
  TopModel model;
  SampleCall alloc("cuMemAlloc_v2", {1, 4096}, {0x7000}), free("cuMemFree_v2", {0x7000});
  model.call(alloc);
  CHECK(model.interval(SECOND).processes[0].held == 4096);
  free.id = 2;
  free.ts = 10'000;
  model.call(free);
  CHECK(model.interval(SECOND).processes[0].held == 0);
  CHECK(model.interval(SECOND).processes[0].most_held == 4096);
}

TEST_CASE("top shows a process that ended once more, and no longer") {
  TopModel model;
  begins(model, 7, "app");
  launch(model, 7);
  Process end;
  end.op = Process::Op::exit;
  end.pid = 7;
  model.process(end);
  CHECK(model.interval(SECOND).processes.at(0).ended);
  model.begin_next(SECOND);
  CHECK(model.interval(2 * SECOND).processes.empty());
}

TEST_CASE("top keeps a bounded number of processes and errors, and adds up the rest") {
  TopModel model;
  constexpr std::uint32_t MANY = 5000;
  for (std::uint32_t pid = 1; pid <= MANY; pid++) {
    SampleCall call("cuCtxSynchronize");
    call.pid = pid;
    call.fail(700);
    model.call(call);
  }
  TopInterval interval = model.interval(SECOND);
  CHECK(interval.processes.size() == TopModel::MOST_PROCESSES + 1);
  CHECK(interval.all.calls == MANY);
  CHECK(interval.all.failed == MANY);
  CHECK(interval.errors.size() == TopModel::MOST_ERRORS);
  CHECK(interval.errors.back().what == "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_CASE("a hostile name moves no cursor in top") {
  TopModel model;
  begins(model, 7, "\033[2J\u202e\n");
  launch(model, 7);
  std::string page = top_page(model.interval(SECOND), {}), json = top_json(model.interval(SECOND));
  CHECK(page.find('\033') == std::string::npos);
  CHECK(page.find("7 ?[2J??") != std::string::npos);
  CHECK(json.find('\033') == std::string::npos);
  CHECK(json.find('\n') == json.size() - 1);
}

TEST_CASE("what top could not hand over is in the next interval") {
  std::vector<std::uint64_t> told;
  bool room = false;
  TopSink sink(
      {.interval_ns = 0},
      [&](const TopInterval& interval) { return std::to_string(interval.all.calls); },
      [&](std::string_view text, bool last) {
        if (!room && !last) return false;
        told.push_back(std::stoull(std::string(text)));
        return true;
      });
  sink.begin({});
  SampleCall call("cuCtxSynchronize");
  sink.call(call);
  sink.flush();
  sink.call(call);
  room = true;
  sink.flush();
  sink.call(call);
  sink.end({});
  CHECK(told == std::vector<std::uint64_t>{2, 1});
}
