#include "sink/stats.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <random>

#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

void make(StatsSink& sink, const char* symbol, std::uint64_t duration) {
  SampleCall call(symbol);
  call.duration = duration;
  sink.call(call);
}

void happens(StatsSink& sink, Process::Op op, std::uint32_t pid) {
  Process process;
  process.op = op;
  process.pid = pid;
  sink.process(process);
}

}  // namespace

TEST_CASE("Copies between GPUs are told by these") {
  StatsSink sink;
  SampleCall call("cuMemcpyDtoDAsync_v2", {1, 2, 64, 0});
  sink.call(call);
  call.details.src_device = 1;
  call.details.dst_device = 0;
  sink.call(call);
  Stats stats = sink.stats();
  REQUIRE(stats.transfers.size() == 2);
  CHECK(stats.transfers[0].bytes == stats.transfers[1].bytes);
  CHECK(std::count_if(stats.transfers.begin(), stats.transfers.end(),
                      [](const auto& one) { return one.op == "GPU 1 to GPU 0"; }) == 1);
}

TEST_CASE("A quantile is the least value that so many do not exceed") {
  Durations few;
  few.add(20);
  CHECK(few.quantile(0.5) == 20);
  few.add(30);
  CHECK(few.quantile(0.5) == 20);
  few.add(31);
  CHECK(few.quantile(0.5) == 30);
  Durations hundred;
  std::vector<std::uint64_t> same;
  for (std::uint64_t i = 1; i <= 100; i++) same.push_back(i < 60 ? i : 1000 * i);
  for (std::uint64_t ns : same) hundred.add(ns);
  CHECK(hundred.quantile(0.07) == 7);
  CHECK(hundred.quantile(0.5) == 50);
  CHECK(hundred.quantile(0.99) < 99'900);
  CHECK(quantile_of(same, 0.99) == 99'000);
  CHECK(quantile_of(same, 1) == 100'000);
  CHECK(quantile_of(same, 0) == 1);
}

TEST_CASE("Quantiles are within two percent, at every size") {
  std::mt19937_64 random(1);
  for (unsigned bits = 1; bits <= 45; bits++) {
    CAPTURE(bits);
    Durations durations;
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 1000; i++) {
      all.push_back((std::uint64_t{1} << bits) + random() % (std::uint64_t{1} << bits));
      durations.add(all.back());
    }
    std::sort(all.begin(), all.end());
    for (double q : {0.5, 0.99}) {
      auto exact = static_cast<double>(all[static_cast<std::size_t>(q * 1000) - 1]);
      auto found = static_cast<double>(durations.quantile(q));
      CHECK(found >= exact * 0.98);
      CHECK(found <= exact * 1.02);
    }
    CHECK(durations.max() == all.back());
    CHECK(durations.quantile(1) == all.back());
  }
}

TEST_CASE("Durations at their limits") {
  Durations durations;
  CHECK(durations.mean() == 0);
  CHECK(durations.quantile(0.99) == 0);
  durations.add(0);
  CHECK(durations.quantile(0.5) == 0);
  durations.add(~std::uint64_t{0} / 2);
  CHECK(durations.max() == ~std::uint64_t{0} / 2);
  CHECK(durations.count() == 2);
  Durations more;
  more.add(7);
  more.add(durations);
  CHECK(more.count() == 3);
  CHECK(more.quantile(0.5) == 7);
}

TEST_CASE("A quantile lies between the shortest and the longest, and one call's is its own") {
  Durations durations;
  for (std::uint64_t ns : {1'234'567, 1'234'567, 1'234'567}) {
    durations.add(ns);
    for (double q : {0.0, 0.5, 0.99}) CHECK(durations.quantile(q) == 1'234'567);
  }
  Durations more;
  more.add(durations);
  CHECK(more.quantile(0.5) == 1'234'567);
}

TEST_CASE("A histogram takes memory for the durations that differ alone") {
  Durations two, many;
  for (int i = 0; i < 1000; i++)
    for (std::uint64_t ns : {std::uint64_t{1}, std::uint64_t{1} << 45}) two.add(ns);
  CHECK(two.memory() <= 64);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; i++) many.add(random() >> random() % 64);
  CHECK(many.memory() <= 11'000);
  // Added in another order, they are the same.
  Durations one, other;
  one.add(two), one.add(many);
  other.add(many), other.add(two);
  for (double q : {0.0, 0.01, 0.5, 0.9, 0.999}) CHECK(one.quantile(q) == other.quantile(q));
  CHECK(one.count() == 102'000);
}

TEST_CASE("Calls are counted by the API's name, the longest total first") {
  StatsSink sink;
  make(sink, "cuCtxSynchronize", 10'000);
  make(sink, "cuMemsetD8_v2", 3000);
  make(sink, "cuMemsetD8", 4000);
  make(sink, "cuInit", 1);
  SampleCall unfinished("cuInit");
  unfinished.has_return = false;
  unfinished.unfinished = true;
  sink.call(unfinished);
  Function unknown = unknown_function("cuNewThing");
  Call call;
  call.function = &unknown;
  sink.call(call);

  Stats stats = sink.stats();
  CHECK(stats.count == 6);
  REQUIRE(stats.calls.size() == 4);
  CHECK(stats.calls[0].name == "cuCtxSynchronize");
  CHECK(stats.calls[1].name == "cuMemsetD8");
  CHECK(stats.calls[1].count == 2);
  CHECK(stats.calls[1].durations.total() == 7000);
  CHECK(stats.calls[1].durations.mean() == 3500);
  CHECK(stats.calls[2].name == "cuInit");
  CHECK(stats.calls[2].count == 2);
  CHECK(stats.calls[2].durations.count() == 1);
  CHECK(stats.calls[3].name == "cuNewThing");
}

TEST_CASE("Errors are counted by function and name; not ready is none") {
  StatsSink sink;
  auto fail = [&](const char* symbol, int with, int times) {
    SampleCall call(symbol);
    call.fail(with);
    for (int i = 0; i < times; i++) sink.call(call);
  };
  fail("cuMemAlloc_v2", 2, 3);
  fail("cuLaunchKernel", 700, 5);
  fail("cuLaunchKernel", 4321, 1);
  fail("cuStreamQuery", 600, 100);
  Stats stats = sink.stats();
  REQUIRE(stats.errors.size() == 3);
  CHECK(stats.errors[0].name == "cuLaunchKernel");
  CHECK(stats.errors[0].error == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(stats.errors[0].count == 5);
  CHECK(stats.errors[1].error == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(stats.errors[2].error == "unknown (4321)");
  for (const auto& calls : stats.calls) {
    if (calls.name == "cuStreamQuery") CHECK(calls.errors == 0);
    if (calls.name == "cuLaunchKernel") CHECK(calls.errors == 6);
  }
}

TEST_CASE("Transfers by direction and kind of call, the most bytes first") {
  StatsSink sink;
  sink.call(SampleCall("cuMemcpyHtoD_v2", {1, 2, 100}));
  sink.call(SampleCall("cuMemcpyHtoDAsync_v2", {1, 2, 1000, 0}));
  sink.call(SampleCall("cuMemcpyHtoDAsync_v2", {1, 2, 24, 0}));
  SampleCall inferred("cuMemcpy", {1, 2, 5});
  inferred.details.op = Op::HtoD;
  sink.call(inferred);
  SampleCall failed("cuMemcpyHtoD_v2", {1, 2, 1 << 20});
  failed.fail(1);
  sink.call(failed);
  SampleCall entry_alone("cuMemcpyDtoHAsync_v2", {1, 2, 50, 0});  // as in the light profile
  entry_alone.has_return = false;
  sink.call(entry_alone);
  Stats stats = sink.stats();
  REQUIRE(stats.transfers.size() == 3);
  CHECK(stats.transfers[0].op == "HtoD");
  CHECK(stats.transfers[0].async);
  CHECK(stats.transfers[0].count == 2);
  CHECK(stats.transfers[0].bytes == 1024);
  CHECK(!stats.transfers[1].async);
  CHECK(stats.transfers[1].count == 2);
  CHECK(stats.transfers[1].bytes == 105);
  CHECK(stats.transfers[2].op == "DtoH");
  CHECK(stats.transfers[2].bytes == 50);
}

TEST_CASE("Launches by kernel, also where a name's memory is used for another") {
  StatsSink sink;
  KernelName name = kernel_named("gemm(int)", "gemm");
  SampleCall launch("cuLaunchKernel", {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  launch.kernel = &name;
  sink.call(launch);
  sink.call(launch);
  name.short_name = "relu";
  sink.call(launch);
  launch.kernel = nullptr;
  for (int i = 0; i < 4; i++) sink.call(launch);
  launch.fail(700);  // launched nothing
  sink.call(launch);
  Stats stats = sink.stats();
  REQUIRE(stats.launches.size() == 3);
  CHECK(stats.launches[0].kernel.empty());
  CHECK(stats.launches[0].count == 4);
  CHECK(stats.launches[1].kernel == "gemm");
  CHECK(stats.launches[1].count == 2);
  CHECK(stats.launches[2].kernel == "relu");
  CHECK(stats.launches[2].count == 1);
}

TEST_CASE("Processes are counted once each") {
  StatsSink sink;
  happens(sink, Process::Op::start, 1);
  happens(sink, Process::Op::exec, 1);
  happens(sink, Process::Op::fork, 2);
  happens(sink, Process::Op::exec, 2);
  happens(sink, Process::Op::exit, 2);
  happens(sink, Process::Op::fork, 2);  // the pid is reused
  CHECK(sink.stats().processes == 3);
}

TEST_CASE("What programs make up is told apart up to a limit, and added up beyond") {
  StatsSink sink;
  for (int i = 0; i < 10'000; i++) {
    SampleCall failing("cuInit", {0});
    failing.fail(100'000 + i);
    sink.call(failing);
    KernelName name = kernel_named("kernel_" + std::to_string(i), "kernel_" + std::to_string(i));
    SampleCall launch("cuLaunchKernel", {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
    launch.kernel = &name;
    sink.call(launch);
    SampleCall copy("cuMemcpyDtoD_v2", {1, 2, 64});
    copy.details.src_device = 0;
    copy.details.dst_device = i + 1;
    sink.call(copy);
    DriverCall operation;
    operation.op = DriverCall::Op::ioctl;
    operation.details.number = static_cast<std::uint32_t>(i);
    sink.driver_call(operation);
    GpuError error;
    error.xid = 13;
    error.device = std::to_string(i);
    sink.gpu_error(error);
  }
  std::vector<std::unique_ptr<Function>> unknown;
  for (int i = 0; i < 2000; i++) {
    unknown.push_back(std::make_unique<Function>(unknown_function("cuNew")));
    SampleCall call("cuInit", {0});
    call.function = unknown.back().get();
    call.ioctls = 1;
    sink.call(call);
  }
  Stats stats = sink.stats();
  auto all = [](const auto& rows) {
    std::uint64_t sum = 0;
    for (const auto& row : rows) sum += row.count;
    return sum;
  };
  CHECK(stats.errors.size() == 1025);
  CHECK(all(stats.errors) == 10'000);
  CHECK(stats.errors[0].error == "(others)");
  CHECK(stats.errors[0].name == "cuInit");
  CHECK(stats.launches.size() == 4097);
  CHECK(all(stats.launches) == 10'000);
  CHECK(stats.launches[0].kernel == "(others)");
  CHECK(stats.transfers.size() == 1025);
  CHECK(all(stats.transfers) == 10'000);
  CHECK(stats.ioctls.size() == 1025);
  CHECK(all(stats.ioctls) == 10'000);
  CHECK(stats.xids.size() == 1025);
  CHECK(all(stats.xids) == 10'000);
  CHECK(all(stats.calls) == 32'000);
}
