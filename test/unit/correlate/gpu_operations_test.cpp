#include "correlate/learners/gpu_operations.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>
#include <numeric>

#include "correlate/correlating.hpp"
#include "support/gpu_records.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

// Records of one process, as they come from inside it.
struct Timing : Correlating {
  using Options = Correlator::Options;

  explicit Timing(Options options = {}, std::uint64_t period = 0)
      : Correlating(std::move(options)) {
    feed(gpu_times({.ts = 1}, period));
  }
  void copy(std::uint64_t ts, std::uint64_t size, std::uint32_t tid = 100,
            std::uint32_t drops = 0) {
    call({.ts = ts, .tid = tid, .drops = drops}, "cuMemcpyHtoD_v2", {0x7000, 0x8000, size});
  }
  void graph(std::uint64_t ts) { call({.ts = ts}, "cuGraphLaunch", {0x9000, 0x5}); }

  // A copy, unless `change` makes it something else.
  void did(GpuPlace place, std::uint32_t correlation, std::uint64_t began, std::uint64_t size,
           const std::function<void(abi::cb_gpu_operation&)>& change = {}) {
    auto bytes = gpu_copy({.ts = SECOND}, place, correlation, began, size);
    if (change) change(bytes.as<abi::cb_gpu_operation>());
    feed(bytes);
    sent[{place.lane, place.batch}]++;
  }
  void launch(std::uint64_t ts) {
    call({.ts = ts}, "cuLaunchKernel", {0x5500, 1, 1, 1, 32, 1, 1, 0, 0x5});
  }
  void did_kernel(GpuPlace place, std::uint32_t correlation, std::uint64_t began) {
    did(place, correlation, began, 0, [](abi::cb_gpu_operation& work) {
      work.head.function = abi::CB_GPU_KERNEL;
      for (std::uint32_t& one : work.grid) one = 1;
      work.block[0] = 32;
      work.block[1] = work.block[2] = 1;
    });
  }
  void end(GpuPlace place, std::uint64_t since = 10, std::uint64_t lost = 0,
           std::uint64_t asked = 0) {
    feed(gpu_batch({.ts = SECOND}, place, sent[{place.lane, place.batch}], since, lost, asked));
  }
  // A window; opening and closing take 100 ns each.
  void window(std::uint64_t open, std::uint64_t closing) {
    feed(gpu_window({.ts = open - 100}, abi::CB_GPU_OPENING));
    feed(gpu_window({.ts = open}, abi::CB_GPU_OPEN));
    feed(gpu_window({.ts = closing}, abi::CB_GPU_CLOSING));
    feed(gpu_window({.ts = closing + 100}, abi::CB_GPU_CLOSED));
  }
  void settle() { correlator.settle_gpu_operations(2 * SECOND); }
  // What was joined: "call@ts", or why not.
  std::string operations() const {
    std::string out;
    for (const GpuOperation& work : sink.gpu_operations)
      out += (work.call ? std::to_string(work.call) : std::string(to_string(work.why_not))) + "@" +
             std::to_string(work.ts) + " ";
    return out;
  }
  std::uint64_t unjoined(Unjoined why) const {
    return correlator.gpu_operation_counts().unjoined[static_cast<std::size_t>(why)];
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent;
};

std::uint64_t unjoined_sum(const Timing& gpu) {
  const auto& by_reason = gpu.correlator.gpu_operation_counts().unjoined;
  return std::accumulate(by_reason.begin(), by_reason.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("Reporting of GPU times is recorded") {
  Timing gpu;
  REQUIRE(gpu.sink.gpu_times_of.size() == 1);
  CHECK(gpu.sink.gpu_times_of[0].version == "13.0.1");
  CHECK(gpu.sink.gpu_times_of[0].library == "/lib/libcupti.so.13");
  CHECK(gpu.sink.gpu_times_of[0].why_not.empty());
}

TEST_CASE("A thread's operations are those of its calls, in order") {
  Timing gpu;
  for (std::uint64_t i = 0; i < 3; i++) gpu.copy(1000 + 200 * i, 64);
  gpu.copy(1100, 64, 200);
  for (std::uint32_t i = 0; i < 3; i++) gpu.did({}, 2 + 2 * i, 2000 + 100 * i, 64);
  gpu.end({});
  gpu.did({2, 0, 200}, 3, 1900, 64);
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 2@2100 3@2200 ");  // the other batch is not completely reported
  gpu.end({2, 0, 200});
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 2@2100 3@2200 4@1900 ");
  const GpuOperation& work = gpu.sink.gpu_operations[0];
  CHECK(work.op == GpuOperation::Op::copy);
  CHECK(work.direction == Op::HtoD);
  CHECK(work.duration == 10);
  CHECK(work.stream == 0);
  CHECK(work.queue == 7);
  CHECK(gpu.correlator.gpu_operation_counts().joined == 4);
  CHECK(gpu.correlator.gpu_operation_counts().answered == 4);
  CHECK(gpu.correlator.gpu_operation_counts().clock_error_ns == 40);
}

TEST_CASE("What was reported a moment ago waits: its call may not have been read yet") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.did({}, 1, 2000, 64);
  gpu.end({});
  gpu.correlator.settle_gpu_operations(SECOND + 1000);
  CHECK(gpu.sink.gpu_operations.empty());
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 ");
}

TEST_CASE("Operations wait for a call that has not returned, however long it takes") {
  Timing gpu;
  const Head before{.ts = 1000}, later{.ts = SECOND + 100};
  gpu.feed(entry(before, "cuMemcpyHtoD_v2", {0x7000, 0x8000, 64}));
  gpu.did({}, 1, 2000, 64);
  gpu.end({});
  gpu.did({2, 0, 200}, 2, 2000, 64);
  gpu.end({2, 0, 200});
  gpu.settle();
  CHECK(gpu.operations() == "no_call@2000 ");  // of another thread
  gpu.feed(returned({.ts = SECOND + 50}, "cuMemcpyHtoD_v2", 0));
  gpu.feed(entry(later, "cuMemcpyHtoD_v2", {0x7000, 0x8000, 64}));  // which did not issue them
  gpu.settle();
  CHECK(gpu.operations() == "no_call@2000 1@2000 ");
}

TEST_CASE("Operations do not wait for a call that began after they did, nor for ever") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.did({}, 1, 2000, 64);
  gpu.end({});
  gpu.feed(entry({.ts = 100 * US}, "cuMemcpyHtoD_v2", {0x7000, 0x8000, 32}));
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 ");
  gpu.did({.batch = 1}, 2, 200 * US, 32);
  gpu.end({.batch = 1});
  gpu.settle();
  CHECK(gpu.sink.gpu_operations.size() == 1);
  gpu.correlator.settle_gpu_operations(20 * SECOND);
  CHECK(gpu.operations() == "1@2000 no_call@200000 ");
}

TEST_CASE("Batches wait for those before them") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.copy(1200, 64);
  gpu.did({1, 1}, 2, 2100, 64);
  gpu.end({1, 1});
  gpu.settle();
  CHECK(gpu.sink.gpu_operations.empty());
  gpu.did({1, 0}, 1, 2000, 64);
  gpu.end({1, 0});
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 2@2100 ");
  SECTION("and come once") {
    gpu.did({1, 0}, 1, 2000, 64);
    gpu.end({1, 0});
    gpu.settle();
    CHECK(gpu.sink.gpu_operations.size() == 2);
  }
}

TEST_CASE("A batch that never comes leaves those after it without calls") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.copy(1200, 64);
  gpu.did({1, 1}, 2, 2100, 64);
  gpu.end({1, 1});
  gpu.correlator.finish();
  CHECK(gpu.operations() == "lost@2100 ");
  CHECK(gpu.unjoined(Unjoined::lost) == 1);
  CHECK(gpu.unjoined(Unjoined::not_reported) == 2);
}

TEST_CASE("A call that the GPU did nothing for is passed over") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.copy(1200, 128);  // whose operation is not reported
  gpu.copy(1400, 256);
  gpu.call({.ts = 1600}, "cuMemcpyHtoD_v2", {0x7000, 0x8000, 512}, {}, 1);  // it failed
  gpu.did({}, 1, 2000, 64);
  gpu.did({}, 3, 2100, 256);
  gpu.end({});
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 3@2100 ");
  CHECK(gpu.unjoined(Unjoined::no_work) == 1);
  CHECK(gpu.correlator.gpu_operation_counts().calls == 3);
}

TEST_CASE("An operation that no call issued takes none") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.copy(9000, 999);
  gpu.did({}, 1, 2000, 999);  // a matching call comes only later
  gpu.did({}, 2, 4000, 64);
  gpu.did({}, 3, 9500, 999);
  gpu.end({});
  gpu.settle();
  CHECK(gpu.operations() == "no_call@2000 1@4000 2@9500 ");
  CHECK(gpu.unjoined(Unjoined::no_call) == 1);
}

TEST_CASE("All operations of a graph have the call that launched it") {
  Timing gpu;
  gpu.graph(1000);
  gpu.graph(1200);
  for (std::uint32_t i = 0; i < 4; i++)
    gpu.did({}, 5 + i / 2, 2000 + 100 * i, 64, [&](abi::cb_gpu_operation& work) {
      work.graph = 2;
      work.node = i % 2;
    });
  gpu.end({});
  gpu.settle();
  CHECK(gpu.operations() == "1@2000 1@2100 2@2200 2@2300 ");
  CHECK(gpu.sink.gpu_operations[3].node == 1);
  CHECK(gpu.sink.gpu_operations[3].stream == 5);
  CHECK(gpu.correlator.gpu_operation_counts().operations == 2);
}

TEST_CASE("CUPTI has no number for what the GPU itself starts") {
  Timing gpu;
  gpu.graph(1000);
  auto in_graph = [](abi::cb_gpu_operation& work) { work.graph = 2; };
  gpu.did({}, 5, 2000, 64, in_graph);
  gpu.end({});
  gpu.did({9, 0, 555}, 0, 2050, 64, in_graph);
  gpu.end({9, 0, 555});
  gpu.settle();
  CHECK(gpu.operations().find("gpu_launched@2050") != std::string::npos);
  CHECK(gpu.operations().find("1@2000") != std::string::npos);
}

TEST_CASE("A kernel is matched by its name and its dimensions") {
  Timing gpu;
  gpu.call({.ts = 500}, "cuModuleGetFunction", {0x1, 0x2, 0x3}, {0x5500}, 0, "_Z3addPf");
  gpu.call({.ts = 1000}, "cuLaunchKernel", {0x5500, 2, 1, 1, 32, 1, 1, 0, 0x5});
  gpu.call({.ts = 1200}, "cuLaunchKernel", {0x5500, 4, 1, 1, 32, 1, 1, 0, 0x5});
  auto name = gpu_record<abi::cb_gpu_name>(abi::CB_GPU_NAME, {.ts = 1300}, "_Z3addPf");
  name.as<abi::cb_gpu_name>().name = 77;
  gpu.feed(name);
  auto kernel = [](std::uint32_t grid, std::uint64_t named) {
    return [=](abi::cb_gpu_operation& work) {
      work.head.function = abi::CB_GPU_KERNEL;
      work.name = named;
      work.grid[0] = grid;
      work.grid[1] = work.grid[2] = work.block[1] = work.block[2] = 1;
      work.block[0] = 32;
    };
  };
  gpu.did({}, 1, 2000, 0, kernel(2, 77));
  gpu.did({}, 2, 2100, 0, kernel(3, 77));
  gpu.did({}, 3, 2200, 0, kernel(4, 78));  // a name that was lost
  gpu.end({});
  gpu.settle();
  CHECK(gpu.operations() == "2@2000 no_call@2100 3@2200 ");
  REQUIRE(gpu.sink.gpu_operations[0].kernel);
  CHECK(gpu.sink.gpu_operations[0].kernel->full == "add(float*)");
  CHECK(gpu.sink.gpu_operations[0].grid == Dim3{2, 1, 1});
  CHECK_FALSE(gpu.sink.gpu_operations[2].kernel);
}

TEST_CASE("Where calls or operations are lost, no call is guessed") {
  Timing gpu;
  gpu.copy(1000, 64);
  SECTION("calls of the thread") {
    gpu.copy(1400, 64, 100, 2);
    gpu.did({}, 1, 2000, 64);
    gpu.end({});
  }
  SECTION("operations in CUPTI") {
    gpu.did({}, 1, 2000, 64);
    gpu.end({}, 10, 1);
    gpu.settle();
    CHECK(gpu.correlator.gpu_operation_counts().invalid == 1);
  }
  SECTION("operations on their way") {
    gpu.sent[{1, 0}] = 1;
    gpu.did({}, 1, 2000, 64);
    gpu.end({});
  }
  gpu.settle();
  CHECK(gpu.operations() == "lost@2000 ");
}

TEST_CASE("An operation without times keeps its place") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.copy(1200, 64);
  gpu.did({}, 1, 0, 64);
  gpu.did({}, 2, 2100, 64);
  gpu.end({});
  gpu.settle();
  CHECK(gpu.operations() == "2@2100 ");
  CHECK(gpu.correlator.gpu_operation_counts().invalid == 1);
}

TEST_CASE("A thread's id that is used again is another thread") {
  Timing gpu;
  gpu.copy(1000, 64, 100);
  auto exit = gpu_record<abi::cb_head>(abi::CB_THREAD_EXIT, {.ts = 1500});
  exit.head().tid = 100;
  gpu.feed(exit);
  gpu.copy(3000, 64, 100);
  gpu.did({2, 0}, 2, 4000, 64);
  gpu.end({2, 0}, 3010);
  gpu.did({1, 0}, 1, 2000, 64);
  gpu.end({1, 0}, 1010);
  gpu.settle();
  CHECK(gpu.sink.gpu_operations.size() == 2);
  for (const GpuOperation& work : gpu.sink.gpu_operations)
    CHECK(work.call == (work.ts == 2000 ? 1 : 2));
}

TEST_CASE("What began after the trace's end is not in it") {
  Timing gpu;
  gpu.copy(1000, 64);
  gpu.correlator.stop_at(3000);
  gpu.did({}, 1, 2000, 64);
  gpu.did({}, 2, 3500, 64);
  gpu.end({});
  gpu.correlator.finish();
  CHECK(gpu.operations() == "1@2000 ");
}

TEST_CASE("A bounded number of operations and calls wait") {
  Timing::Options options;
  options.limits.of(Kept::gpu_operations) = 4;
  Timing gpu(std::move(options));
  for (std::uint64_t i = 0; i < 6; i++) gpu.copy(1000 + 200 * i, 64);
  CHECK(gpu.unjoined(Unjoined::not_reported) == 5);
  for (std::uint32_t i = 0; i < 9; i++) gpu.did({}, i + 1, 5000 + 100 * i, 64);
  gpu.end({});
  gpu.correlator.finish();
  CHECK(gpu.sink.gpu_operations.size() == 3);
  CHECK(gpu.operations().find("lost@") == 0);
  CHECK(gpu.correlator.bounds().all_left_out(Kept::gpu_operations) > 0);
  CHECK(gpu.correlator.gpu_operation_counts().calls == 6);
  CHECK(gpu.unjoined(Unjoined::not_reported) == 6);
}

TEST_CASE("Without reporting of GPU times, calls wait for nothing") {
  Correlating alone;
  auto times = gpu_record<abi::cb_gpu_times>(abi::CB_GPU_TIMES, {.ts = 1}, "no libcupti was found");
  alone.feed(times);
  alone.call({.ts = 1000}, "cuMemcpyHtoD_v2", {0x7000, 0x8000, 64});
  alone.correlator.finish();
  REQUIRE(alone.sink.gpu_times_of.size() == 1);
  CHECK(alone.sink.gpu_times_of[0].why_not == "no libcupti was found");
  CHECK(alone.correlator.gpu_operation_counts().calls == 0);
}

TEST_CASE("In windows, only calls in them are asked for, and a window is reported when it closes") {
  Timing gpu({}, SECOND);
  for (std::uint64_t ts = 1000; ts <= 9000; ts += 1000) gpu.launch(ts);  // 100 ns each
  gpu.copy(3500, 64);  // copies are not recorded in windows
  gpu.window(2500, 5500);
  REQUIRE(gpu.sink.gpu_windows.size() == 1);
  CHECK(gpu.sink.gpu_windows[0].ts == 2500);
  CHECK(gpu.sink.gpu_windows[0].duration == 3000);
  gpu.window(7500, 8500);
  for (std::uint32_t i = 0; i < 3; i++) gpu.did_kernel({}, 1 + i, 3050 + 1000 * i);
  gpu.end({}, 10, 0, 3040);
  gpu.did_kernel({1, 1}, 4, 8050);
  gpu.end({1, 1}, 10, 0, 8040);
  gpu.settle();
  CHECK(gpu.operations() == "3@3050 4@4050 5@5050 8@8050 ");
  gpu.correlator.finish();
  CHECK(gpu.correlator.gpu_operation_counts().calls == 4);
  CHECK(gpu.correlator.gpu_operation_counts().answered == 4);
  CHECK(unjoined_sum(gpu) == 0);
}

TEST_CASE("Whether a call at a window's edge was recorded shows when its thread asked for room") {
  auto first_call = [](std::uint64_t asked) {
    Timing gpu({}, SECOND);
    gpu.launch(2950);  // while the window opens
    gpu.launch(3100);
    gpu.window(3000, 9000);
    gpu.did_kernel({}, 1, asked + 10);
    gpu.end({}, 10, 0, asked);
    gpu.settle();
    return gpu.operations();
  };
  CHECK(first_call(2970) == "1@2980 ");
  CHECK(first_call(3150) == "2@3160 ");
}

TEST_CASE("A call in a window that no operation answers is counted") {
  Timing gpu({}, SECOND);
  gpu.launch(1000);
  gpu.launch(3000);
  gpu.window(2500, 5500);
  gpu.settle();
  gpu.correlator.finish();
  CHECK(gpu.correlator.gpu_operation_counts().calls == 1);
  CHECK(gpu.unjoined(Unjoined::not_reported) == 1);
}

TEST_CASE("A window whose end is lost is not reported") {
  Timing gpu({}, SECOND);
  gpu.feed(gpu_window({.ts = 1000}, abi::CB_GPU_OPENING));
  gpu.feed(gpu_window({.ts = 1100}, abi::CB_GPU_OPEN));
  gpu.window(5000, 6000);
  REQUIRE(gpu.sink.gpu_windows.size() == 1);
  CHECK(gpu.sink.gpu_windows[0].ts == 5000);
}
