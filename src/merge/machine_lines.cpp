#include "merge/machine_lines.hpp"

#include <algorithm>

#include "analyze/derived/gpu_samples.hpp"
#include "util/saturating.hpp"

namespace cudabpf::merge {

namespace {

using analyze::LineKind;

// Where the header leaves out the ids, as it does with --redact, the address says which GPU it is.
bool is_same_gpu(const SampledGpu& a, const SampledGpu& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return !a.bus_id.empty() && a.bus_id == b.bus_id;
}

const SampledGpu* gpu_of(const analyze::Line& sample, const TraceHeader& header) {
  if (!header.sampling) return nullptr;
  std::uint32_t device = analyze::sample_in(sample).device;
  for (const SampledGpu& gpu : header.sampling->gpus)
    if (gpu.device == device) return &gpu;
  return nullptr;
}

}  // namespace

std::uint64_t monotonic_of(const TraceHeader& header) {
  if (!header.clocks || !header.clocks->monotonic) return 0;
  std::int64_t added = header.clocks->offsets.monotonic_ns;
  std::uint64_t shown = header.clocks->monotonic;
  if (added >= 0) return shown - std::min(shown, static_cast<std::uint64_t>(added));
  return saturating_sum(shown, std::uint64_t{0} - static_cast<std::uint64_t>(added));
}

void MachineLines::add(const analyze::TraceFacts& facts) {
  const TraceHeader& header = facts.header;
  Trace trace;
  std::uint64_t began = monotonic_of(header);
  trace.boot_id = began ? header.boot_id : "";
  trace.begin = saturating_sum(began, facts.part.recorded_from);
  trace.end = saturating_sum(began, facts.duration());
  if (header.sampling) trace.gpus = header.sampling->gpus;
  trace.has_errors = header.driver_traced.value_or(false);
  trace.has_interrupts = trace.has_errors && header.mode == "machine";
  traces_.push_back(std::move(trace));
}

bool MachineLines::Trace::covers(const analyze::Line& line, const TraceHeader& header) const {
  if (boot_id.empty() || boot_id != header.boot_id) return false;
  std::uint64_t at = saturating_sum(monotonic_of(header), line.ts);
  if (at < begin || at > end) return false;
  if (line.kind == LineKind::gpu_error) return has_errors;
  if (line.kind == LineKind::interrupt) return has_interrupts;
  const SampledGpu* gpu = gpu_of(line, header);
  return gpu && std::any_of(gpus.begin(), gpus.end(),
                            [&](const SampledGpu& one) { return is_same_gpu(one, *gpu); });
}

bool MachineLines::have(const analyze::Line& line, const TraceHeader& header,
                        std::size_t traces) const {
  if (line.kind != LineKind::gpu_sample && line.kind != LineKind::gpu_error &&
      line.kind != LineKind::interrupt)
    return false;
  if (!monotonic_of(header)) return false;
  return std::any_of(traces_.begin(), traces_.begin() + static_cast<std::ptrdiff_t>(traces),
                     [&](const Trace& one) { return one.covers(line, header); });
}

}  // namespace cudabpf::merge
