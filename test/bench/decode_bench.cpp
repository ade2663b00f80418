// Nanoseconds per call to parse, correlate and write the line, as the thread that reads the ring
// does.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "correlate/correlator.hpp"
#include "support/sample_records.hpp"
#include "trace/write/call_line.hpp"

using namespace cudabpf;

namespace {

// Writes all lines into the same buffer.
struct LineSink : PartialSink {
  void call(const Call& call) override {
    benchmark::DoNotOptimize(line.bound(call));
    bytes += static_cast<std::size_t>(line.write(buffer->data(), call) - buffer->data());
  }
  void lost(const LossEvent&) override {}

  CallLine line;
  std::unique_ptr<std::array<char, 1 << 16>> buffer = std::make_unique<std::array<char, 1 << 16>>();
  std::size_t bytes = 0;
};

struct NoLines : LineSink {
  void call(const Call& call) override { benchmark::DoNotOptimize(&call); }
};

// Sends every record once per iteration: the records of 4 threads in turn, as a busy process writes
// them.
template <typename SinkType>
void send(benchmark::State& state, const std::vector<samples::RecordBytes>& before,
          const std::vector<samples::RecordBytes>& records) {
  SinkType sink;
  auto functions = cuda_functions();
  Correlator correlator(
      sink, [&](std::uint16_t id) { return id < functions.size() ? &functions[id] : nullptr; },
      [](std::uint32_t) { return ProcessIdentity(); }, {});
  for (const auto& record : before) correlator.on_record(*record.parse());
  std::uint64_t calls_before = correlator.counts().calls;
  while (state.KeepRunning())
    for (const auto& record : records) correlator.on_record(*record.parse());
  auto calls = static_cast<double>(correlator.counts().calls - calls_before);
  state.counters["one_call"] =
      benchmark::Counter(calls, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

constexpr int THREADS = 4;
constexpr int RUN = 8;  // calls of one thread in a row

std::vector<samples::RecordBytes> kernel_names() {
  using namespace samples;
  std::vector<RecordBytes> records;
  for (std::uint64_t handle = 1; handle <= 64; handle++) {
    records.push_back(entry({}, "cuModuleGetFunction", {0x7ffe0000, 0x5500, 0x7ffe1000}, {},
                            "_ZN2at6native29vectorized_elementwise_kernelILi4EfEEvif"));
    records.push_back(returned({}, "cuModuleGetFunction", 0, {0x5600 + handle * 64}));
  }
  return records;
}

std::vector<samples::RecordBytes> launches(bool with_return) {
  using namespace samples;
  std::vector<RecordBytes> records;
  for (std::uint32_t thread = 0; thread < THREADS; thread++)
    for (std::uint64_t i = 1; i <= RUN; i++) {
      Head head{.ts = 1'000'000'000 + i * 4000, .tid = 100 + thread};
      records.push_back(
          entry(head, "cuLaunchKernel", {0x5600 + i * 64, 1024, 1, 1, 256, 1, 1, 4096, 0x7f00}));
      head.ts += 3100;
      if (with_return) records.push_back(returned(head, "cuLaunchKernel"));
    }
  return records;
}

std::vector<samples::RecordBytes> copies() {
  using namespace samples;
  std::vector<RecordBytes> records;
  for (std::uint32_t thread = 0; thread < THREADS; thread++)
    for (std::uint64_t i = 1; i <= RUN; i++) {
      Head head{.ts = 1'000'000'000 + i * 4000, .tid = 100 + thread};
      records.push_back(entry(head, "cuMemcpyHtoDAsync_v2",
                              {0x7f2a40000000 + i * 512, 0x7f2b00000000, 4194304, 0x7f00}));
      head.ts += 2100;
      records.push_back(returned(head, "cuMemcpyHtoDAsync_v2"));
    }
  return records;
}

void launch(benchmark::State& state) { send<LineSink>(state, kernel_names(), launches(true)); }
void launch_without_line(benchmark::State& state) {
  send<NoLines>(state, kernel_names(), launches(true));
}
void copy(benchmark::State& state) { send<LineSink>(state, {}, copies()); }
void copy_without_line(benchmark::State& state) { send<NoLines>(state, {}, copies()); }

void parse_alone(benchmark::State& state) {
  auto records = launches(true);
  while (state.KeepRunning())
    for (const auto& record : records) benchmark::DoNotOptimize(record.parse());
  state.counters["one_call"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * THREADS * RUN,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK(launch);
BENCHMARK(launch_without_line);
BENCHMARK(copy);
BENCHMARK(copy_without_line);
BENCHMARK(parse_alone);

}  // namespace
