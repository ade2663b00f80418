#include "sink/top/top_sink.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "sink/top/top_json.hpp"
#include "sink/top/top_text.hpp"
#include "support/sample_calls.hpp"
#include "support/units.hpp"
#include "support/watched.hpp"

using namespace cudabpf;

TEST_CASE("what top shows of an interval is of that interval alone") {
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
  for (int i = 0; i < 5; i++) {
    SampleCall call("cuCtxSynchronize");
    call.pid = 7;
    single.call(call);
  }
  const Function& function = *find_function("cuCtxSynchronize");
  added.add(7, function, function.op, {.count = 5, .time_ns = 5 * 2500});
  CHECK(top_json(single.interval(SECOND)) == top_json(added.interval(SECOND)));
}

TEST_CASE("top takes of sums what came since the last ones") {
  TopModel model;
  Session session;
  session.monotonic_ns = 10 * SECOND;
  model.begin(session);
  begins(model, 7, "app");
  const Function* launch = find_function("cuLaunchKernel");
  const Function* copy = find_function("cuMemcpyHtoD_v2");
  std::vector<Tally> sums = {
      {.pid = 7, .function = launch, .calls = 5, .time_ns = 500, .ended = 4},
      {.pid = 7, .function = copy, .calls = 2, .time_ns = 100, .bytes = 300, .ended = 2}};
  model.tallied({sums});
  model.tallied({sums});  // nothing new
  TopFigures first = model.interval(SECOND).all;
  CHECK(first.calls == 7);
  CHECK(first.launches == 5);
  CHECK(first.time_ns == 600);
  CHECK(first.copies[Op::HtoD].count == 2);
  CHECK(first.copies[Op::HtoD].bytes == 300);
  model.begin_next(SECOND);
  CHECK(model.interval(2 * SECOND).all.calls == 0);

  sums[0].calls = 8;
  sums[0].failed = 2;
  sums[0].failed_at = 11 * SECOND + 5;
  sums[0].error = 700;
  for (Tally& sum : sums) sum.last = true;
  model.tallied({sums});
  // Another process with the same pid.
  model.tallied({{{.pid = 7, .function = launch, .calls = 1, .ended = 1}}});
  TopInterval second = model.interval(2 * SECOND);
  CHECK(second.all.calls == 4);
  CHECK(second.all.failed == 2);
  CHECK(second.all.copies.empty());
  REQUIRE(second.errors.size() == 1);
  CHECK(second.errors[0].ts == SECOND + 5);
  CHECK(second.errors[0].pid == 7);
  CHECK(second.errors[0].what == "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (the last)");
  CHECK(second.errors[0].count == 2);
  CHECK(second.errors[0].name == "app");
}

TEST_CASE("top does not keep a process of which only the last sums come") {
  TopModel model;
  const Function* sync = find_function("cuCtxSynchronize");
  model.tallied({{{.pid = 9, .function = sync, .calls = 3, .last = true}}});
  CHECK(model.interval(SECOND).processes.at(0).figures.calls == 3);
  model.begin_next(SECOND);
  CHECK(model.interval(2 * SECOND).processes.empty());
  model.tallied({{{.pid = 9, .function = sync, .calls = 2}}});
  CHECK(model.interval(2 * SECOND).all.calls == 2);
}

TEST_CASE("sums that shrink make no absurd figure in top") {
  TopModel model;
  const Function* sync = find_function("cuCtxSynchronize");
  model.tallied({{{.pid = 9, .function = sync, .calls = 3, .time_ns = 7}}});
  model.begin_next(SECOND);
  model.tallied({{{.pid = 9, .function = sync, .calls = 2, .time_ns = 6}}});
  CHECK(model.interval(2 * SECOND).all.calls == 0);
  CHECK(model.interval(2 * SECOND).all.time_ns == 0);
}

TEST_CASE("the last interval of top, alone, has the books") {
  std::string text;
  TopSink sink({.interval_ns = 0}, [&](const TopInterval& interval, bool) {
    text = top_json(interval);
    return true;
  });
  sink.begin({});
  sink.flush();
  CHECK(text.find("accounts") == std::string::npos);
  Totals totals;
  totals.accounts = {.entered = 9, .emitted = 7, .dropped = 2, .received = 7};
  totals.tallied = {.begun = 5, .ended = 3, .under_way = 1, .dropped = 1};
  sink.end(totals);
  CHECK(text.find(R"("accounts":{"entered":9,"emitted":7,"dropped":2,"received":7},)"
                  R"("tallied":{"begun":5,"ended":3,"under_way":1,"dropped":1})") !=
        std::string::npos);
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

TEST_CASE("top shows the memory that a process holds, and held at most") {
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
  CHECK(interval.processes.size() == TopModel::MAX_PROCESSES + 1);
  CHECK(interval.all.calls == MANY);
  CHECK(interval.all.failed == MANY);
  CHECK(interval.errors.size() == TopModel::MAX_ERRORS);
  CHECK(interval.errors.back().what == "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(interval.errors.back().pid == MANY);
}

TEST_CASE("a hostile name moves no cursor in top") {
  TopModel model;
  begins(model, 7, "\033[2J\u202e\n");
  launch(model, 7);
  std::string page = TopText().text(model.interval(SECOND), {}),
              json = top_json(model.interval(SECOND));
  CHECK(page.find('\033') == std::string::npos);
  CHECK(page.find("7 ?[2J??") != std::string::npos);
  CHECK(json.find('\033') == std::string::npos);
  CHECK(json.find('\n') == json.size() - 1);
}

TEST_CASE("what top could not hand over is in the next interval") {
  std::vector<std::uint64_t> counts;
  bool space = false;
  TopSink sink({.interval_ns = 0}, [&](const TopInterval& interval, bool last) {
    if (!space && !last) return false;
    counts.push_back(interval.all.calls);
    return true;
  });
  sink.begin({});
  SampleCall call("cuCtxSynchronize");
  sink.call(call);
  sink.flush();
  sink.call(call);
  space = true;
  sink.flush();
  sink.call(call);
  sink.end({});
  CHECK(counts == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("top shows a process's functions, and those that do not fit as others") {
  TopModel model;
  launch(model, 7);
  launch(model, 7);
  SampleCall sync("cuCtxSynchronize"), nested("cuCtxSynchronize");
  sync.pid = nested.pid = 7;
  sync.fail(700);
  nested.parent = 5;
  model.call(sync);
  model.call(nested);
  TopProcess process = model.interval(SECOND).processes.at(0);
  REQUIRE(process.functions.size() == 2);
  CHECK(process.functions[0].name == "cuLaunchKernel");
  CHECK(process.functions[0].calls == 2);
  CHECK(process.functions[0].time_ns == 5000);
  CHECK(process.functions[1].calls == 2);
  CHECK(process.functions[1].failed == 1);
  CHECK(process.functions[1].time_ns == 2500);
  model.begin_next(SECOND);
  CHECK(model.interval(2 * SECOND).processes.at(0).functions.empty());

  std::uint64_t sum = 0;
  for (const Function& function : cuda_functions()) {
    model.add(7, function, function.op, {.count = 3});
    sum += 3;
  }
  process = model.interval(2 * SECOND).processes.at(0);
  CHECK(process.functions.size() <= TopModel::MAX_FUNCTIONS + 1);
  CHECK(process.functions.back().name == TOP_OTHERS);
  for (const TopPart& part : process.functions) sum -= part.calls;
  CHECK(sum == 0);
}

TEST_CASE("top shows kernels by their names where launches are recorded one by one") {
  TopModel model;
  KernelName gemm = kernel_named("gemm(int)", "gemm"), add = kernel_named("add()", "add");
  auto launches = [&](const char* symbol, std::size_t words, const KernelName* kernel) {
    SampleCall call(symbol, std::vector<std::uint64_t>(words));
    call.kernel = kernel;
    model.call(call);
  };
  CHECK_FALSE(model.interval(SECOND).processes.size());
  for (int i = 0; i < 3; i++) launches("cuLaunchKernel", 11, &gemm);
  for (int i = 0; i < 2; i++) launches("cuLaunchKernel", 11, &add);
  launches("cuLaunchKernel", 11, nullptr);
  launches("cuGraphLaunch", 2, nullptr);
  TopProcess process = model.interval(SECOND).processes.at(0);
  CHECK(process.has_kernels);
  REQUIRE(process.kernels.size() == 4);
  CHECK(process.kernels[0].name == "gemm");
  CHECK(process.kernels[0].calls == 3);
  CHECK(process.kernels[1].name == "add");
  CHECK(process.kernels[1].calls == 2);
  CHECK(process.kernels[2].name == "(graph)");
  CHECK(process.kernels[3].name == "(unknown)");

  for (std::size_t i = 0; i < 2 * TopModel::MAX_KERNELS; i++) {
    KernelName name = kernel_named("", std::string(1000, 'k') + std::to_string(i));
    launches("cuLaunchKernel", 11, &name);
    KernelName other = kernel_named("", std::to_string(i));
    launches("cuLaunchKernel", 11, &other);
  }
  process = model.interval(SECOND).processes.at(0);
  CHECK(process.kernels.size() <= TopModel::MAX_KERNELS + 1);
  CHECK(process.kernels.back().name == TOP_OTHERS);
  std::uint64_t sum = 0;
  for (const TopPart& part : process.kernels) {
    sum += part.calls;
    CHECK(part.name.size() <= 200);
  }
  CHECK(sum == process.figures.launches);

  TopModel counted;
  const Function* launch = find_function("cuLaunchKernel");
  counted.tallied({{{.pid = 7, .function = launch, .calls = 5}}});
  CHECK_FALSE(counted.interval(SECOND).processes.at(0).has_kernels);
}

TEST_CASE("top shows on which device a process holds memory") {
  TopModel model;
  auto allocates = [&](std::uint64_t id, std::uint64_t size, std::uint64_t address,
                       std::optional<std::int32_t> device) {
    SampleCall alloc("cuMemAlloc_v2", {1, size}, {address});
    alloc.id = id;
    alloc.details.device = device;
    model.call(alloc);
  };
  allocates(1, 100, 0x1000, 0);
  allocates(2, 30, 0x2000, 1);
  allocates(3, 5, 0x3000, {});
  allocates(4, 7, 0x4000, -3);
  SampleCall host("cuMemAllocHost_v2", {1, 1000}, {0x5000});
  host.details.device = 0;
  model.call(host);
  SampleCall free("cuMemFree_v2", {0x1000});
  free.id = 9;
  free.ts = 10'000;
  model.call(free);
  TopProcess process = model.interval(SECOND).processes.at(0);
  REQUIRE(process.devices.size() == 3);
  CHECK(process.devices[0].held == 0);
  CHECK(process.devices[0].peak == 100);
  CHECK(process.devices[1].held == 30);
  CHECK(process.devices[RunMemory::NO_DEVICE].held == 12);
  CHECK(process.held == 42);
  std::string json = top_json(model.interval(SECOND));
  CHECK(json.find(R"("devices":[{"device":0,"held":0,"peak":100},{"device":1,"held":30,"peak":30},)"
                  R"({"device":null,"held":12,"peak":12}])") != std::string::npos);
}

TEST_CASE("however much there is to report, a line of JSON of top fits, and its parts add up") {
  TopModel model;
  for (std::uint32_t pid = 1; pid <= 200; pid++) {
    begins(model, pid, "\033\033\033\033\033\033\033\033\033\033\033\033\033\033\033");
    for (const Function& function : cuda_functions())
      model.add(pid, function, function.op, {.count = 1});
  }
  std::string json = top_json(model.interval(SECOND));
  CHECK(json.size() < 100'000);
  std::size_t calls = cuda_functions().size(), begin = json.find("\"functions\":[");
  std::size_t end = json.find(']', begin);
  for (std::size_t at = begin; (at = json.find("\"calls\":", at)) < end; at++)
    calls -= std::stoul(json.substr(at + 8, 20));
  CHECK(calls == 0);
}
