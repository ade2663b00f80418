#include "analyze/diff/measures.hpp"

#include <algorithm>

#include "analyze/memory/memory.hpp"
#include "analyze/work.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {
bool is_of_gpu(MemoryKind kind) { return Memory::side_of(kind) == Memory::Side::gpu; }
}  // namespace

Measures::Measures(Names& names)
    : names_(names),
      calls_(names, Calls::By::function),
      kernels_(names),
      ioctls_(names),
      errors_(names, false),
      execution_(names, {}, 0),
      memory_(names, *this),
      others_(names.add("(others)")) {}

void Measures::line(const Line& line) {
  calls_.line(line);
  kernels_.line(line);
  ioctls_.line(line);
  errors_.line(line);
  execution_.line(line);
  issued_gpu_time_.line(line);
  memory_.line(line);
  if (line.kind != LineKind::call || !is_counted(line)) return;
  if (line.meaning->counted == CountedAs::copies) transfer(line);
  if (!line.has(Field::duration)) return;
  auto add = [&](Timed& timed) {
    timed.calls++;
    timed.time += line.duration;
  };
  add(in_calls_);
  if (waits(line.work, line)) add(waiting_);
  if (line.meaning->node == NodeWork::kernel) add(launching_);
}

void Measures::transfer(const Line& line) {
  if (line.failed() || line.captured) return;
  std::uint32_t direction = direction_of(line, names_).id;
  if (!has_room_for(transfers_, direction, MAX_DIRECTIONS)) direction = others_.id;
  Transfers& transfers = transfers_[direction];
  transfers.count++;
  transfers.bytes += line.size;
}

void Measures::finish(const TraceFacts& facts) {
  calls_.finish(facts);
  kernels_.finish(facts);
  ioctls_.finish(facts);
  errors_.finish(facts);
  execution_.finish(facts);
  issued_gpu_time_.finish(facts);
  time_iterations();
  found_errors_ = errors_.answer();
  facts_ = facts;
}

void Measures::time_iterations() {
  const ThreadWork* thread = execution_.thread();
  if (!thread || !issued_gpu_time_.measured()) return;
  const Iterations& iterations = execution_.iterations();
  for (std::size_t i = iterations.warm_up; i < iterations.each.size(); i++) {
    const Iteration& one = iterations.each[i];
    gpu_of_iterations_.push_back(
        issued_gpu_time_.between(thread->process, thread->tid, one.begin, one.end));
  }
  std::sort(gpu_of_iterations_.begin(), gpu_of_iterations_.end());
}

void Measures::allocated(const LiveMemory::Block& block) {
  of_kind(held_, block.kind).block_allocated(block.size);
  if (is_of_gpu(block.kind)) gpu_held_.block_allocated(block.size);
}

void Measures::ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended how) {
  of_kind(held_, block.kind).block_ended(block.size, how);
  if (is_of_gpu(block.kind)) gpu_held_.block_ended(block.size, how);
}

std::vector<Calls::Figures> Measures::functions() const {
  auto groups = calls_.groups();
  return groups.empty() ? std::vector<Calls::Figures>() : groups.front().functions;
}

std::vector<Measures::Transfers> Measures::transfers() const {
  std::vector<Transfers> all;
  for (const auto& [direction, transfers] : transfers_) {
    all.push_back(transfers);
    all.back().name = names_.text({direction});
  }
  return all;
}

std::vector<Measures::Peak> Measures::peaks() const {
  std::vector<Peak> all;
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
    if (held_[kind].peak)
      all.push_back({std::string(to_string(static_cast<MemoryKind>(kind))), held_[kind].peak});
  return all;
}

}  // namespace cudabpf::analyze
