// Samples all of the machine's GPUs while a trace is taken, on a thread of its own. NVML may be
// slow, and hang with a GPU: no other thread waits for it longer than a moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "collect/gpu/nvml.hpp"
#include "collect/gpu/switch_reader.hpp"
#include "cudabpf/source.hpp"

namespace cudabpf {

class GpuSampler {
 public:
  static constexpr std::uint64_t MS = 1'000'000;
  // GPM's counters give no figures for shorter times.
  static constexpr std::uint64_t WINDOW_NS = 100 * MS;
  static constexpr std::uint64_t SLOW_NS = 1000 * MS;
  // The driver keeps only a limited number of records of context switches.
  static constexpr std::uint64_t SWITCHES_NS = 100 * MS;

  using Load = std::function<Result<nvml::Functions>()>;
  // Called on the sampler's thread.
  using OnNews = std::function<void(News news)>;

  // Without a period: as often as costs little for this many GPUs. With `switches`, samples also
  // show which processes had the GPU.
  GpuSampler(Load load, std::optional<std::uint64_t> period_ns,
             std::unique_ptr<SwitchReader> switches = nullptr);
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  // How GPUs will be sampled, or why they will not.
  const Sampling& sampling() const { return sampling_; }
  // Begins to sample. The trace's ts 0 was at `begin_ns` on CLOCK_MONOTONIC.
  void start(std::uint64_t begin_ns, OnNews on_news);
  // Reads everything once more. Afterwards nothing is reported. That may take seconds, in which
  // `meanwhile` is called over and over.
  void stop(const std::function<void()>& meanwhile = {});

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
  Sampling sampling_;
};

}  // namespace cudabpf
