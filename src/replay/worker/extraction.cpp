#include "replay/worker/extraction.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "replay/export/granules.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::uint64_t NEAR = 64 << 10;       // what lies nearer than this is copied as one
constexpr std::uint64_t MAX_TABLE = 64 << 10;  // of a table's bytes, pointers are looked for in

}  // namespace

Result<> Extraction::run(std::size_t step) {
  TRY(play_up_to_(step + 1));
  if (!bench_->player().skipped_steps().contains(step)) return ok();
  std::string why;
  for (const Skipped& skipped : bench_->player().skipped()) why = skipped.why;
  return Error{fmt::format("{} was not run: {}", bench_->player().description(step), why), {}};
}

void Extraction::need(const bundle::Block& block) {
  bundle::Block& known = blocks_.try_emplace(block.address.value, block).first->second;
  known.size = std::max(known.size, block.size);
}

// In the order of addresses, so that it goes from one to the next.
void Extraction::need_touching(const LiveBlocks& live) {
  for (std::size_t i = 0; i + 1 < live.all().size(); i++) {
    const bundle::Block &block = live.all()[i], &next = live.all()[i + 1];
    if (blocks_.contains(block.address.value) && block.kind == next.kind &&
        range_of(block).end == next.address.value)
      need(next);
  }
}

std::vector<const GpuCode::Variable*> Extraction::variables() const {
  const Manifest& manifest = bench_->folder().manifest();
  std::vector<bool> is_own(manifest.modules.size());
  for (const Taken& taken : taken_)
    is_own[manifest.kernels[launch_at(taken.step).kernel].module] = true;
  std::vector<const GpuCode::Variable*> own;
  for (std::size_t i = 0; i < is_own.size(); i++)
    for (const bundle::Variable& captured : manifest.modules[i].variables)
      for (const GpuCode::Variable& variable : bench_->code().variables())
        if (is_own[i] && variable.captured == &captured) own.push_back(&variable);
  return own;
}

std::vector<Range> Extraction::block_ranges() const {
  std::vector<Range> all;
  for (const auto& [address, block] : blocks_) all.push_back(range_of(block));
  return merged(std::move(all));
}

Result<> Extraction::survey(MemoryTaken memory) {
  MemoryView::Fingerprints first;
  for (Taken& taken : taken_) {
    TRY(play_up_to_(taken.step));
    auto before = TRY(view_.fingerprints());
    if (first.empty()) first = before;
    auto differing = view_.changes(first, before);
    differing_.insert(differing_.end(), differing.begin(), differing.end());
    TRY(add_needed(taken, memory));
    TRY(run(taken.step));
    taken.written = view_.changes(before, TRY(view_.fingerprints()));
    differing_.insert(differing_.end(), taken.written.begin(), taken.written.end());
    LiveBlocks live(bench_->folder().manifest(), bench_->tape(), taken.step);
    for (const bundle::Block& block : live.all())
      if (!parts_in(taken.written, range_of(block)).empty()) need(block);
    if (memory == MemoryTaken::touching) need_touching(live);
  }
  differing_ = merged(std::move(differing_));
  return settle_regions();
}

// A pointer to a table of pointers, or a variable with some, needs what these point to, too; the
// table may be anywhere in a large block.
Result<> Extraction::follow(const LiveBlocks& live, std::vector<FoundPointer> pointers,
                            std::vector<bool>& is_needed) const {
  constexpr int MAX_LEVELS = 4;
  constexpr std::size_t MAX_TABLES = 4096;
  std::map<std::uint64_t, bool> seen;
  for (int level = 0; level < MAX_LEVELS && !pointers.empty(); level++) {
    std::vector<FoundPointer> further;
    for (const FoundPointer& pointer : pointers) {
      is_needed[pointer.block] = true;
      std::uint64_t begin = pointer.to / sizeof(std::uint64_t) * sizeof(std::uint64_t);
      if (seen.size() == MAX_TABLES || !seen.try_emplace(begin, true).second) continue;
      Range block = range_of(live.all()[pointer.block]);
      Range table{std::max(begin, block.begin), std::min(begin + MAX_TABLE, block.end)};
      auto found = pointers_in(TRY(view_.read(table)), live, true);
      further.insert(further.end(), found.begin(), found.end());
    }
    pointers = std::move(further);
  }
  return ok();
}

Result<> Extraction::add_needed(Taken& taken, MemoryTaken memory) {
  LiveBlocks live(bench_->folder().manifest(), bench_->tape(), taken.step);
  const bundle::Extent& parameters = launch_at(taken.step).parameters;
  auto found =
      pointers_in(bench_->player().data().substr(parameters.offset, parameters.size), live, false);
  for (const FoundPointer& pointer : found) {
    const bundle::Block& block = live.all()[pointer.block];
    taken.said.pointers.push_back(
        {static_cast<std::uint32_t>(pointer.offset), {pointer.to}, {block.address, block.size}});
  }
  for (const GpuCode::Variable* variable : variables()) {
    Range range = range_of(*variable);
    range.end = std::min(range.end, range.begin + MAX_TABLE);
    auto held = pointers_in(TRY(view_.read(range)), live, true);
    found.insert(found.end(), held.begin(), held.end());
  }
  std::vector<bool> is_needed(live.all().size(), memory == MemoryTaken::all);
  TRY(follow(live, found, is_needed));
  for (std::size_t i = 0; i < is_needed.size(); i++)
    if (is_needed[i]) need(live.all()[i]);
  return ok();
}

Result<> Extraction::settle_regions() {
  std::vector<Range> all = block_ranges();
  for (const GpuCode::Variable* variable : variables()) all.push_back(range_of(*variable));
  regions_ = merged(std::move(all));
  given_ = joined(differing_, regions_, NEAR);
  if (size_of(given_) > host_memory() / 4)
    return Error{fmt::format("{} are not the same for all of the launches, which is more than this "
                             "machine has memory for",
                             human_bytes(size_of(given_))),
                 "take fewer of them with --occurrences"};
  for (Taken& taken : taken_) {
    taken.said.changed = size_of(joined(taken.written, regions_, 1));
    taken.written = joined(taken.written, regions_, NEAR);
  }
  return ok();
}

Result<Extracted> Extraction::extract(const Request& request) {
  for (std::uint64_t step : request.launches) {
    if (step >= bench_->tape().steps().size() || !bench_->tape().steps()[step].launch ||
        (!taken_.empty() && step <= taken_.back().step))
      return Error{"there is no such launch", {}};
    taken_.push_back({step, {}, {}});
    taken_.back().said.step = step;
  }
  if (taken_.empty()) return Error{"there is no launch to take", {}};
  TRY(survey(request.memory));
  auto writer = bundle::FolderWriter::create(request.output);
  if (!writer) return std::move(writer.error());
  TRY(write(*writer));
  TRY(finish(*writer));
  Extracted done;
  done.blocks = blocks_.size();
  for (const auto& [address, block] : blocks_) done.block_bytes += block.size;
  for (Taken& taken : taken_) done.launches.push_back(std::move(taken.said));
  return done;
}

}  // namespace cudabpf::replay
