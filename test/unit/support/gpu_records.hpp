// Records of what GPUs did, as the library inside a process makes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/sample_records.hpp"

namespace samples {

template <typename Struct>
RecordBytes gpu_record(std::uint8_t kind, const Head& place, std::string_view text = {}) {
  RecordBytes bytes(sizeof(Struct));
  bytes.append(text.data(), text.size());
  auto& head = bytes.head();
  head.ts = place.ts;
  head.pid = place.pid;
  head.tid = 999;  // one of CUPTI's
  head.kind = kind;
  head.string_size = static_cast<std::uint16_t>(text.size());
  return bytes;
}

// A period: times are recorded in windows.
inline RecordBytes gpu_times(const Head& head, std::uint64_t period = 0) {
  auto bytes = gpu_record<cudabpf::abi::cb_gpu_times>(cudabpf::abi::CB_GPU_TIMES, head,
                                                      "/lib/libcupti.so.13");
  bytes.as<cudabpf::abi::cb_gpu_times>().version = 130001;
  bytes.as<cudabpf::abi::cb_gpu_times>().times_of = cudabpf::abi::CB_GPU_NODES;
  bytes.as<cudabpf::abi::cb_gpu_times>().period = period;
  return bytes;
}

inline RecordBytes gpu_window(const Head& head, cudabpf::abi::cb_gpu_window_step step) {
  auto bytes = gpu_record<cudabpf::abi::cb_gpu_window>(cudabpf::abi::CB_GPU_WINDOW, head);
  bytes.as<cudabpf::abi::cb_gpu_window>().step = step;
  return bytes;
}

struct GpuPlace {
  std::uint32_t lane = 1, batch = 0, thread = 100;
};

inline RecordBytes gpu_copy(const Head& head, GpuPlace place, std::uint32_t correlation,
                            std::uint64_t began, std::uint64_t size) {
  auto bytes = gpu_record<cudabpf::abi::cb_gpu_operation>(cudabpf::abi::CB_GPU_WORK, head);
  auto& work = bytes.as<cudabpf::abi::cb_gpu_operation>();
  work.head.function = cudabpf::abi::CB_GPU_COPY;
  work.began = began;
  work.ended = began ? began + 10 : 0;
  work.size = size;
  work.lane = place.lane;
  work.batch = place.batch;
  work.correlation = correlation;
  work.stream = 7;
  work.direction = 1;
  return bytes;
}

inline RecordBytes gpu_batch(const Head& head, GpuPlace place, std::uint32_t operations,
                             std::uint64_t since = 10, std::uint64_t lost = 0,
                             std::uint64_t asked = 0) {
  auto bytes = gpu_record<cudabpf::abi::cb_gpu_batch>(cudabpf::abi::CB_GPU_BATCH, head);
  auto& batch = bytes.as<cudabpf::abi::cb_gpu_batch>();
  batch.since = since;
  batch.asked = asked;
  batch.thread = place.thread;
  batch.lane = place.lane;
  batch.batch = place.batch;
  batch.lost = lost;
  batch.clock_error = 40;
  batch.operations = operations;
  return bytes;
}

}  // namespace samples
