// What a GPU does because of calls. They are reported to the simulated CUPTI, if the library that
// cuInit loads has loaded it.
#pragma once

#include <atomic>
#include <vector>

#include "capture.hpp"
#include "graph_nodes.hpp"

namespace fake {

extern std::atomic<bool> gpu_is_watched;

void look_for_cupti();
void gpu_does(const Work& work, Handle stream);
// Faults stay, and are reported by the next call; what the driver refuses at once is returned.
Status gpu_computes(const Work& work);
// Hold state_mutex.
void gpu_does_graph(const std::vector<const Work*>& operations, Handle stream);

// What a call returns that has the GPU do something at once.
template <typename Make>
Status done(Handle stream, Status checked, Make make) {
  const bool watched = gpu_is_watched.load(std::memory_order_relaxed);
  if (checked != kSuccess || (!watched && !computes())) return checked;
  const Work work = make();
  if (watched) gpu_does(work, stream);
  return gpu_computes(work);
}

// The same, if it is not captured into a graph instead.
template <typename Make>
Status given(Handle stream, Status checked, Make make) {
  if (const auto status = captured(stream, checked, make)) return *status;
  return done(stream, checked, make);
}

}  // namespace fake
