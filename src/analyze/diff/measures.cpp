#include "analyze/diff/measures.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyze/work.hpp"

namespace cudabpf::analyze {

Measures::Measures(Names& names)
    : names_(names),
      calls_(names, Calls::By::function),
      kernels_(names),
      ioctls_(names),
      errors_(names, false),
      course_(names, 0, 0),
      memory_(names, *this) {}

void Measures::line(const Line& line) {
  calls_.line(line);
  kernels_.line(line);
  ioctls_.line(line);
  errors_.line(line);
  course_.line(line);
  memory_.line(line);
  if (line.kind != LineKind::call || line.type != Type::transfer || line.failed() ||
      !is_counted(line) || line.recorded)
    return;
  Transfers& transfers = transfers_[direction_of(line, names_).id];
  transfers.count++;
  transfers.bytes += line.size;
}

void Measures::finish(const TraceFacts& facts) {
  ioctls_.finish(facts);
  errors_.finish(facts);
  course_.finish(facts);
  facts_ = facts;
  header_ = Json::parse(facts.header, nullptr, false);
}

void Measures::allocated(const LiveMemory::Block& block) {
  of_kind(held_, block.kind).block_allocated(block.size);
}

void Measures::ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended how) {
  of_kind(held_, block.kind).block_ended(block.size, how);
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
