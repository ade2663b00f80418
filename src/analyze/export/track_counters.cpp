// The counters of a timeline: memory that a process holds, PyTorch's blocks, and how many kernels
// it launches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/export/tracks.hpp"

namespace cudabpf::analyze {

// Launches are counted when they return: lines come in that order, so a count is never written
// before it is complete.
void Tracks::launched(Process& process, std::uint64_t ts) {
  std::uint64_t from = ts - ts % COUNTED_NS;
  if (from > process.counted_from || !process.launches.track.id) count_launches(process, from);
  process.counted++;
}

// Writes what was counted until `now`, and zero once if nothing came after it.
void Tracks::count_launches(Process& process, std::uint64_t now) {
  if (!process.launches.track.id) {
    if (now == ~std::uint64_t{0}) return;
    announce(process.launches.track, Track::Kind::counter, &process.track, &process.track,
             "launches/s");
  }
  if (process.counted) {
    set(process.launches, process.counted_from, process.counted * (SECOND_NS / COUNTED_NS));
    std::uint64_t after = process.counted_from + COUNTED_NS;
    if (now > after) set(process.launches, after, 0);
  }
  process.counted = 0;
  process.counted_from = now;
}

void Tracks::allocated(const LiveMemory::Block& block) {
  if (in_part_ && block.since < part_.to) set_memory(block, block.since, true);
}

void Tracks::ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended) {
  if (in_part_ && ts < part_.to) set_memory(block, ts, false);
}

void Tracks::set_memory(const LiveMemory::Block& block, std::uint64_t ts, bool more) {
  Process& process = this->process(block.pid);
  Counter& counter = process.memory[static_cast<std::size_t>(block.kind)];
  if (!counter.track.id) {
    counter.track.bytes = true;
    announce(counter.track, Track::Kind::counter, &process.track, &process.track,
             fmt::format("memory held: {}", to_string(block.kind)));
  }
  set(counter, ts,
      more ? counter.value + block.size : counter.value - std::min(counter.value, block.size));
}

// What tensors have of the memory that PyTorch's allocator holds.
void Tracks::blocks(const Line& line) {
  bool drawn = in_part_ && line.ts < part_.to;
  if (drawn)
    each_emptied(line, [&](std::uint64_t process) {
      blocks_.each_of(process, [&](const auto& allocator) { set_blocks(allocator, line.ts, 0); });
    });
  blocks_.line(line);
  if (drawn && line.kind == LineKind::block)
    blocks_.each_of(line.process->number, [&](const auto& allocator) {
      set_blocks(allocator, line.ts, allocator.levels().now.allocated);
    });
}

void Tracks::set_blocks(const Blocks::Allocator& allocator, std::uint64_t ts, std::uint64_t bytes) {
  Process& process = this->process(allocator.pid);
  Counter& counter = process.blocks[allocator.gpu];
  if (counter.value == bytes) return;
  if (!counter.track.id) {
    counter.track.bytes = true;
    announce(counter.track, Track::Kind::counter, &process.track, &process.track,
             fmt::format("PyTorch's blocks, GPU {}", allocator.gpu));
  }
  set(counter, ts, bytes);
}

namespace {

enum class GpuUnit : std::uint8_t {
  percent,
  bytes_per_second,
  watts,
  joules,
  megahertz,
  celsius,
  bytes
};

constexpr std::string_view unit_text(GpuUnit unit) {
  constexpr std::string_view TEXTS[] = {", %", ", bytes/s", ", W", ", J", ", MHz", ", °C", ""};
  return TEXTS[static_cast<std::size_t>(unit)];
}

}  // namespace

std::string Tracks::on_host(const Line& line) const {
  return line.host ? fmt::format(" on {}", names_.text(line.host)) : std::string();
}

// As NVML reported: counters do not fall to zero where there is no sample. The energy used since
// the driver was loaded is not drawn.
void Tracks::gpu_sample(const Line& line) {
  const GpuSample& sample = *line.sample;
  auto draw = [&](const std::optional<double>& value, GpuUnit unit, std::string_view title) {
    if (!value || unit == GpuUnit::joules) return;
    std::string name =
        fmt::format("GPU {}{}: {}{}", sample.device, on_host(line), title, unit_text(unit));
    Track& track = machine_track(name, Track::Kind::counter, unit == GpuUnit::bytes);
    out_.counter(track, sample.ts, static_cast<std::uint64_t>(std::llround(*value)));
  };
#define GPU_FIGURE(key, unit, decimals, most, title) draw(sample.key, GpuUnit::unit, title);
#include "cudabpf/gpu_figures.def"
#undef GPU_FIGURE
  if (sample.residents) draw_residents(sample);
}

// The share of the time in which each process had the GPU; it falls to zero when another has it.
void Tracks::draw_residents(const GpuSample& sample) {
  std::uint64_t time = sample.residents->to - sample.residents->from;
  std::map<std::uint32_t, std::uint64_t> percents;
  for (std::uint32_t pid : resident_[sample.device]) percents[pid] = 0;
  for (const GpuResident& resident : sample.residents->processes)
    percents[resident.pid] += 100 * resident.ns / time;
  resident_[sample.device].clear();
  for (auto [pid, percent] : percents) {
    std::string name = pid ? fmt::format("process {}", pid) : "a process without a pid";
    Track& track = machine_track(fmt::format("GPU {}: had by {}, %", sample.device, name),
                                 Track::Kind::counter);
    out_.counter(track, sample.ts, percent);
    if (percent) resident_[sample.device].insert(pid);
  }
}

// Many blocks may end in one nanosecond: the value is what the last of them leaves.
void Tracks::set(Counter& counter, std::uint64_t ts, std::uint64_t value) {
  if (counter.changed && counter.ts != ts) write(counter);
  counter.ts = ts;
  counter.value = value;
  counter.changed = true;
}

void Tracks::write(Counter& counter) {
  if (!counter.changed) return;
  out_.counter(counter.track, counter.ts, counter.value);
  counter.changed = false;
}

}  // namespace cudabpf::analyze
