// Checks the page at the end of a run, byte for byte.
#include <catch2/catch_test_macros.hpp>

#include "golden.hpp"
#include "sink/run_summary.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

void repeat(StatsSink& sink, SampleCall&& call, int times, std::uint64_t duration) {
  for (int i = 0; i < times; i++) {
    call.duration = duration + static_cast<std::uint64_t>(i % 100) * duration / 100;
    sink.call(call);
  }
}

void launches(StatsSink& sink, const std::string& kernel, int times) {
  KernelName name = kernel_named(kernel, kernel);
  SampleCall call("cuLaunchKernel", {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
  if (!kernel.empty()) call.kernel = &name;
  for (int i = 0; i < times; i++) {
    call.duration = 3000 + static_cast<std::uint64_t>(i % 50) * 100;
    sink.call(call);
  }
}

Stats an_inference() {
  StatsSink sink;
  Process process;
  process.pid = 4242;
  sink.process(process);
  launches(sink, "vectorized_elementwise_kernel", 5200);
  launches(sink, "ampere_fp16_s16816gemm_fp16_128x64_sliced1x2_ldg8_f2f_stages_64x5_tn", 2400);
  for (int i = 0; i < 9; i++) launches(sink, "kernel_" + std::to_string(i) + "\n", 100 - i);
  launches(sink, "", 12);
  repeat(sink, SampleCall("cuMemcpyHtoDAsync_v2", {1, 2, 1 << 20, 0}), 500, 4000);
  repeat(sink, SampleCall("cuMemcpyDtoH_v2", {1, 2, 2048}), 100, 18'000);
  for (std::uint64_t i = 0; i < 40; i++) {
    SampleCall weights("cuMemAlloc_v2", {1, 4 << 20}, {(i + 1) << 32});
    weights.duration = 90'000 + i * 900;
    sink.call(weights);
  }
  sink.call(SampleCall("cuMemAllocHost_v2", {1, 1000}, {0x55550000}));
  SampleCall failing("cuMemAlloc_v2", {1, std::uint64_t{1} << 40});
  failing.fail(2);
  sink.call(failing);
  for (const char* symbol :
       {"cuInit", "cuCtxSynchronize", "cuStreamSynchronize", "cuEventRecord", "cuEventSynchronize",
        "cuStreamCreate", "cuEventCreate", "cuModuleLoadData", "cuModuleUnload", "cuGraphLaunch"})
    repeat(sink, SampleCall(symbol), 10, 1000);
  SampleCall entry_alone("cuMemsetD8Async", {1, 0, 4096, 0});
  entry_alone.has_return = false;
  sink.call(entry_alone);
  sink.end({});
  return sink.stats();
}

}  // namespace

TEST_CASE("A summary, byte for byte") {
  Totals totals;
  totals.duration_ns = 12'431'000'000;
  totals.counts.unfinished = 1;
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 1203;
  totals.losses[static_cast<std::size_t>(Loss::ring_name)] = 4;
  TraceWritten written{"traces/trace_20261121T101500.jsonl", 1, 9800, 1'740'000, 0, true};
  std::string text = render_summary(an_inference(), totals, written, Terminal{});
  check_golden("summary.txt", text);
  // No line is wider than the terminal, in characters.
  std::size_t width = 0;
  for (char c : text) {
    if (c == '\n') {
      CHECK(width <= 80);
      width = 0;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      width++;
    }
  }
}

TEST_CASE("A summary of nothing says so, and why") {
  const std::string NOTHING = "0 calls of 0 processes in 0 ns\n";
  Stats stats;
  CHECK(render_summary(stats, {}, std::nullopt, Terminal{}) ==
        NOTHING + "  No libcuda was found or loaded.\n");
  stats.libraries = 1;
  CHECK(render_summary(stats, {}, std::nullopt, Terminal{}) ==
        NOTHING + "  No traced process called a traced function of libcuda.\n");
  stats.libraries = 0;
  stats.inside = true;
  CHECK(render_summary(stats, {}, std::nullopt, Terminal{}) ==
        NOTHING +
            "  Nothing was recorded: no process called cuInit, where recording starts (a\n"
            "  program that finds no libcuda never does), or the program is linked\n"
            "  statically, clears its environment, or runs below another root (chroot), where\n"
            "  the library that records is not.\n");
  Totals totals;
  totals.losses[static_cast<std::size_t>(Loss::process_unrecorded)] = 1;
  CHECK(render_summary(stats, totals, std::nullopt, Terminal{})
            .starts_with(NOTHING + "  No process that called cuInit could be recorded.\n\nlost\n"));
}

TEST_CASE("A summary says where the trace is and what to ask it") {
  Terminal terminal;
  auto shown = [&](const TraceWritten& written) {
    Stats stats;
    stats.count = 1;
    return render_summary(stats, {}, written, terminal).substr(30);
  };
  CHECK(shown({"-", 1, 2, 100, 0, true}) == "");
  CHECK(shown({"/dev/null", 1, 2, 100, 0, true}) == "");
  CHECK(shown({"-", 1, 2, 100, 1300, false, true}) ==
        "\nlost\n  1,300 events that came after the trace's reader had gone\n");
  CHECK(shown({"t x.jsonl.zst", 3, 2, 100, 0, true}) ==
        "\ntrace\n  t x.jsonl.zst  the last of 3 files; in all: 100 B, 2 lines\n"
        "\nnext\n  zstd -dc 't x.jsonl.zst' | jq -c 'select(.type == \"process\") | {ts, op, "
        "pid, cmdline}'\n  cudabpf schema    what every field means\n");
  Stats stats;
  stats.calls.resize(1);
  stats.calls[0].durations.add(3'000'000);
  CHECK(render_summary(stats, {}, TraceWritten{"t.jsonl", 1, 3, 100, 0, true}, terminal)
            .find("jq -c 'select(.duration_us > 1500) | {ts, name, duration_us}' t.jsonl\n") !=
        std::string::npos);
  std::string failed = shown({"t.jsonl", 1, 1, 100, 7, false});
  CHECK(failed.starts_with("\nlost\n  7 output_failed\n    Events could not be written."));
  CHECK(failed.find("  t.jsonl  100 B, 1 line; its end could not be written\n") !=
        std::string::npos);
}

TEST_CASE("Failures that are usual are a sentence, and nothing to look for") {
  Stats stats;
  stats.errors = {{"cuLibraryUnload", "CUDA_ERROR_DEINITIALIZED", 16}};
  TraceWritten written{"t.jsonl", 1, 3, 100, 0, true};
  std::string text = render_summary(stats, {}, written, Terminal{});
  CHECK(text.find("\n16 cuLibraryUnload failed with CUDA_ERROR_DEINITIALIZED, as usual:") !=
        std::string::npos);
  CHECK(text.find("\nerrors") == std::string::npos);
  CHECK(text.find("select(.error)") == std::string::npos);
  stats.errors.push_back({"cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", 1});
  text = render_summary(stats, {}, written, Terminal{});
  CHECK(text.find("\n  cuMemAlloc  CUDA_ERROR_OUT_OF_MEMORY      1\n") != std::string::npos);
  CHECK(text.find("select(.error)") != std::string::npos);
}

TEST_CASE("Headings are bold on a terminal that takes colour") {
  Terminal terminal{true, true, 200};
  Stats stats;
  stats.count = 2;
  CHECK(render_summary(stats, {}, std::nullopt, terminal) ==
        "\033[1m2 calls of 0 processes in 0 ns\033[0m\n");
}
