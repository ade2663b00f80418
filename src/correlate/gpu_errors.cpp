#include "correlate/gpu_errors.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

// The log is read within milliseconds of the line.
constexpr std::uint64_t PATIENCE_NS = 500'000'000;
constexpr std::size_t MAX = 1024;  // waiting at once; a trace has only a few

// The log omits the PCI function; the tracepoint's record may cut the message.
bool is_same(const GpuError& traced, const GpuError& logged) {
  return traced.xid == logged.xid && traced.device.starts_with(logged.device) &&
         logged.message.starts_with(traced.message);
}

GpuError joined(GpuError traced, const GpuError& logged) {
  traced.pid = logged.pid;
  traced.comm = logged.comm;
  traced.message = logged.message;
  traced.message_cut = false;
  return traced;
}

}  // namespace

void GpuErrors::traced(GpuError error) {
  auto other = std::find_if(logged_.begin(), logged_.end(),
                            [&](const GpuError& logged) { return is_same(error, logged); });
  if (other == logged_.end()) return wait(traced_, std::move(error));
  emit_(joined(std::move(error), *other));
  logged_.erase(other);
}

void GpuErrors::logged(GpuError error) {
  auto other = std::find_if(traced_.begin(), traced_.end(),
                            [&](const GpuError& traced) { return is_same(traced, error); });
  if (other == traced_.end()) return wait(logged_, std::move(error));
  emit_(joined(std::move(*other), error));
  traced_.erase(other);
}

void GpuErrors::wait(std::vector<GpuError>& errors, GpuError error) {
  if (errors.size() >= MAX) settle();
  errors.push_back(std::move(error));
}

void GpuErrors::settle(std::uint64_t now) {
  for (auto* waiting : {&traced_, &logged_}) {
    auto settled = std::stable_partition(
        waiting->begin(), waiting->end(),
        [&](const GpuError& error) { return now - std::min(now, error.ts) >= PATIENCE_NS; });
    std::for_each(waiting->begin(), settled, emit_);
    waiting->erase(waiting->begin(), settled);
  }
}

}  // namespace cudabpf
