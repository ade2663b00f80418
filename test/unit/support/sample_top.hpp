// Intervals of `cudabpf top`, for the tests of its page.
#pragma once

#include <string>

#include "sink/top/top_history.hpp"
#include "sink/top/top_model.hpp"

namespace cudabpf {

inline TopProcess top_process(std::uint32_t pid, std::string name, std::uint64_t calls,
                              std::uint64_t time_ns, std::uint64_t held = 0) {
  TopProcess process;
  process.pid = pid;
  process.name = std::move(name);
  process.figures.calls = calls;
  process.figures.time_ns = time_ns;
  process.held = process.most_held = held;
  return process;
}

// The processes of a training, an inference in a pod and one that fails, on two GPUs: the second
// after the beginning that `second` says.
inline TopInterval sample_top(std::uint64_t second = 83, std::uint64_t activity = 63) {
  constexpr std::uint64_t SECOND = 1'000'000'000, GIB = std::uint64_t{1} << 30;
  TopInterval interval;
  interval.begin_ns = (second - 1) * SECOND;
  interval.end_ns = second * SECOND;
  TopProcess training =
      top_process(4242, "python3", 98'211 + 500 * activity, 2'312'000'000, 40 * GIB);
  training.most_held = 44 * GIB;
  training.figures.launches = 51'204;
  training.figures.waiting_ns = 912'000'000;
  training.figures.copies[Op::HtoD] = {120, 1'300'000'000};
  training.figures.copies[Op::DtoH] = {12, 5'000'000};
  training.devices = {{0, {24 * GIB, 26 * GIB}}, {1, {16 * GIB, 18 * GIB}}};
  training.functions = {{"cuLaunchKernel", 51'000, 0, 1'204'000'000},
                        {"cuStreamSynchronize", 1'204, 0, 912'000'000},
                        {"cuMemcpyHtoDAsync", 120, 0, 90'000'000},
                        {"cuPointerGetAttributes", 99, 3, 40'000},
                        {std::string(TOP_OTHERS), 45'788, 0, 105'960'000}};
  training.has_kernels = true;
  training.kernels = {{"ampere_fp16_s16816gemm_fp16_128x64_sliced1x2_ldg8_f2f", 40'000, 0, 1},
                      {"vectorized_elementwise_kernel", 11'000, 0, 1},
                      {"(graph)", 204, 0, 1}};
  TopProcess serving = top_process(31337, "llama-server", 7'120, 210'000'000, 3 * GIB / 2);
  serving.figures.launches = 310;
  serving.pod = "5f0c0f0e-2d8e-4f0f-9d3b-0a6c5d8b8b11";
  serving.container = "0123456789abcdef0123456789abcdef";
  TopProcess failing = top_process(777, "\033[2J中文名字", 12, 4'000);
  failing.figures.failed = 3;
  failing.ended = true;
  for (const TopProcess& process : {training, serving, failing}) {
    interval.processes.push_back(process);
    interval.all.add(process.figures);
  }
  for (std::uint32_t device = 0; device < 2; device++) {
    GpuSample sample;
    sample.ts = interval.end_ns;
    sample.device = device;
    sample.window_ns = SECOND;
    sample.sm_active = device ? 0 : static_cast<double>(activity);
    sample.power_w = device ? 71.4 : 200.0 + 3.0 * static_cast<double>(activity);
    sample.memory_used = device ? 17e9 : 26e9;
    interval.gpus.add(sample);
    interval.sampled_gpus[device] = {"NVIDIA H100 80GB HBM3", 80.0 * GIB, 700};
  }
  interval.errors = {
      {80 * SECOND, 777, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", failing.name, 21'087},
      {82 * SECOND, 777, "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (the last)", failing.name,
       2},
      {82 * SECOND, 0, "Xid 31 on 0000:41:00.0: GPU memory page fault"}};
  return interval;
}

// A minute and more of them.
inline TopHistory sample_top_history() {
  TopHistory history;
  for (std::uint64_t second = 10; second <= 83; second++)
    history.add(sample_top(second, (second * 7) % 100 * (second % 20 < 12)));
  return history;
}

}  // namespace cudabpf
