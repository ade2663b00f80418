#include "analyze/memory/memory.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "analyze/derived/processes.hpp"

namespace cudabpf::analyze {

namespace {

std::uint64_t until(std::uint64_t since, std::uint64_t ts) { return ts > since ? ts - since : 0; }

}  // namespace

void Memory::Level::set(const Held& held) {
  Level now;
  now.most = now.last = held;
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++)
    now.sums[static_cast<std::size_t>(side_of(static_cast<MemoryKind>(kind)))] += held.kinds[kind];
  now.touched = true;
  merge(now);
}

void Memory::Level::merge(const Level& next) {
  if (!next.touched) return;
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    auto side = static_cast<std::size_t>(side_of(static_cast<MemoryKind>(kind)));
    if (!touched || next.sums[side] >= sums[side]) most.kinds[kind] = next.most.kinds[kind];
  }
  most.blocks = std::max(most.blocks, next.most.blocks);
  for (std::size_t side = 0; side < SIDES; side++)
    sums[side] = std::max(sums[side], next.sums[side]);
  last = next.last;
  touched = true;
}

Memory::Memory(Names& names, Part part, By by)
    : names_(names),
      part_(part),
      by_(by),
      begun_(!part.from),
      memory_(names, *this),
      blocks_(names, part, is_by_place()),
      driver_(names, part) {}

void Memory::line(const Line& line) {
  line_ = &line;
  memory_.line(line);
  line_ = nullptr;
  blocks_changed(line);
  driver_.line(line);
  if (line.meaning->memory == MemoryEffect::alloc && !line.has(Field::ret))
    not_returned_ += part_.has(line);
  if (runs_out(line, memory_) && part_.has(line) && times_ran_out_++ < KEPT_RAN_OUT)
    ran_out_.push_back(out_of_memory(line, memory_, blocks_, driver_));
  if (by_ != By::process) return;
  for (const Process* gone : line.gone) holder_by_number_.erase(gone->number);
  if (line.kind != LineKind::process || !line.process) return;
  if (auto at = holder_by_number_.find(line.process->number); at != holder_by_number_.end())
    if (Holder& holder = holders_[at->second]; holder.pid) holder.comm = line.process->comm;
}

std::uint64_t Memory::number_of(const Block& block, const RangePlace* place) const {
  if (by_ == By::process) return block.process;
  if (by_ == By::holder) return origin_of(block).holder.id;
  return place ? place->number + 1 : 0;
}

// Who holds a block that the current line allocates.
std::size_t Memory::new_holder(const Block& block) {
  const RangePlace* place = line_ && is_by_place() ? line_->place : nullptr;
  std::uint64_t number = number_of(block, place);
  auto [at, is_new] = holder_by_number_.try_emplace(number, holders_.size());
  if (!is_new) return at->second;
  if (holders_.size() > MAX_HOLDERS) return at->second = MAX_HOLDERS;
  Holder& holder = holders_.emplace_back();
  holder.others = at->second == MAX_HOLDERS;
  if (holder.others) return at->second;
  holder.place = place;
  if (by_ == By::holder) holder.file = origin_of(block).holder;
  if (by_ != By::process) return at->second;
  holder.pid = block.pid;
  holder.comm = line_ && line_->process ? line_->process->comm : Name{};
  return at->second;
}

Memory::Holder& Memory::holder_of(const Block& block) {
  return holders_[by_ != By::process ? holder_by_block_.at(block.number)
                                     : holder_by_number_.at(block.process)];
}

// Until now blocks were followed as in the part: of all that, only what is held goes into it.
void Memory::begin_part() {
  begun_ = true;
  auto begin = [&](Holder& holder) {
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
      holder.kinds[kind] = {};
      holder.kinds[kind].held = holder.kinds[kind].peak = holder.held.kinds[kind];
    }
    holder.most_blocks = holder.held.blocks;
    for (MemoryPeak& peak : holder.peaks) peak.begin_anew(part_.from, number_);
    holder.curve = {};
    holder.curve.at(0).set(holder.held);
  };
  for (Asked& asked : by_file_.rows()) asked.allocations = {};
  begin(all_);
  for (Holder& holder : holders_) begin(holder);
  churn_.clear();
  first_allocation_ = last_allocation_ = 0;
}

// PyTorch's blocks are parts of what a process holds.
void Memory::blocks_changed(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { set_blocks(process, 0, line.ts); });
  blocks_.line(line);
  if (line.kind != LineKind::block || !line.process) return;
  std::uint64_t bytes = 0;
  blocks_.each_of(line.process->number, [&](const Blocks::Allocator& allocator) {
    bytes += allocator.levels().now.allocated;
  });
  set_blocks(line.process->number, bytes, line.ts);
}

void Memory::set_blocks(std::uint64_t process, std::uint64_t bytes, std::uint64_t ts) {
  if (by_ != By::process || ts >= part_.to) return;
  auto of = holder_by_number_.find(process);
  if (of == holder_by_number_.end() || holders_[of->second].others) return;
  if (!begun_ && ts >= part_.from) begin_part();
  Holder& its = holders_[of->second];
  std::uint64_t before = its.held.blocks;
  if (bytes == before) return;
  for (Holder* holder : {&its, &all_}) {
    holder->held.blocks += bytes - before;
    holder->most_blocks = std::max(holder->most_blocks, holder->held.blocks);
    holder->curve.at(part_.clipped(ts) - begin()).set(holder->held);
  }
}

void Memory::add(Holder& holder, const Block& block) const {
  auto kind = static_cast<std::size_t>(block.kind);
  holder.kinds[kind].block_allocated(block.size);
  holder.peaks[static_cast<std::size_t>(side_of(block.kind))].allocated(block);
  holder.held.kinds[kind] += block.size;
  holder.curve.at(part_.clipped(block.since) - begin()).set(holder.held);
}

void Memory::drop(Holder& holder, const Block& block, std::uint64_t ts, Ended how) const {
  auto kind = static_cast<std::size_t>(block.kind);
  holder.peaks[static_cast<std::size_t>(side_of(block.kind))].ended(block, origin_of(block).holder);
  if (ts >= part_.to) return;  // at the end of the part, it was still held
  holder.kinds[kind].block_ended(block.size, how);
  holder.held.kinds[kind] -= block.size;
  holder.curve.at(part_.clipped(ts) - begin()).set(holder.held);
}

Memory::Asked& Memory::asked_by(const Block& block) {
  Name holder = origin_of(block).holder;
  return by_file_.of(holder.id, {.holder = holder});
}

void Memory::find_asked() {
  for (std::size_t side = 0; side < SIDES; side++)
    for (const MemoryPart& at_peak : all_.at_peak[side].files)
      by_file_.of(at_peak.name.id, {.holder = at_peak.name}).at_peak[side] = at_peak.bytes;
  asked_ = by_file_.take([](const Asked& a, const Asked& b) {
    return std::tuple(b.at_peak, b.allocations, a.holder.id) <
           std::tuple(a.at_peak, a.allocations, b.holder.id);
  });
  bool any = std::any_of(asked_.begin(), asked_.end(), [](const Asked& one) { return one.holder; });
  std::erase_if(asked_, [&](const Asked& one) {
    constexpr std::array<std::uint64_t, SIDES> NOTHING{};
    return !any || (one.allocations == NOTHING && one.held == NOTHING && one.at_peak == NOTHING);
  });
}

Memory::Churn& Memory::churn_of(std::uint64_t size) {
  auto at = churn_.find(size);
  if (at != churn_.end()) return at->second;
  if (churn_.size() >= MAX_SIZES) size = 0;
  Churn& churn = churn_[size];
  churn.size = size;
  return churn;
}

void Memory::allocated(const Block& block) {
  if (side_of(block.kind) == Side::gpu) blocks_.reserved(block, origin_of(block));
  if (line_ && !line_->wanted) {
    not_wanted_.insert(block.number);
    return;
  }
  if (!begun_ && block.since >= part_.from) begin_part();
  number_ = block.number;
  if (block.since >= part_.to) return;
  add(all_, block);
  Asked& asked = asked_by(block);
  asked.allocations[static_cast<std::size_t>(side_of(block.kind))]++;
  asked.held[static_cast<std::size_t>(side_of(block.kind))] += block.size;
  std::size_t holder = new_holder(block);
  if (by_ != By::process) holder_by_block_[block.number] = holder;
  add(holders_[holder], block);
  Churn& churn = churn_of(block.size);
  churn.allocations++;
  bool one_size = churn.size == block.size;
  if (one_size && churn.last_pid == block.pid && block.since - churn.last_freed < SOON)
    churn.again++;
  if (!first_allocation_) first_allocation_ = block.since;
  last_allocation_ = block.since;
}

void Memory::ended(const Block& block, std::uint64_t ts, Ended how) {
  if (side_of(block.kind) == Side::gpu && how != Ended::with_process)
    blocks_.released(block, origin_of(block), ts);
  if (not_wanted_.erase(block.number)) return;
  if (!begun_ && ts >= part_.from) begin_part();
  if (block.since >= part_.to) return;
  drop(all_, block, ts, how);
  if (ts < part_.to)
    asked_by(block).held[static_cast<std::size_t>(side_of(block.kind))] -= block.size;
  drop(holder_of(block), block, ts, how);
  if (by_ != By::process) holder_by_block_.erase(block.number);
  if (how == Ended::freed) {
    if (ts >= part_.to) return;
    Churn& churn = churn_of(block.size);
    churn.frees++;
    churn.lifetimes.add(until(block.since, ts));
    churn.last_freed = ts;
    churn.last_pid = block.pid;
  } else if (how != Ended::replaced) {
    Fate fate = how == Ended::with_context ? Fate::with_context : Fate::with_process;
    keep_never_freed({block, fate, until(block.since, ts)});
  }
}

void Memory::freed_unknown(const MemoryCall& free) {
  if (!part_.has(free.ts) || (line_ && !line_->wanted)) return;
  unknown_free_count_++;
  if (unknown_frees_.size() < KEPT_UNKNOWN)
    unknown_frees_.push_back(
        {{free.function}, free.pid, free.ptr ? *free.ptr : *free.handle, free.ts, free.id});
}

void Memory::keep_never_freed(const NeverFreed& block) {
  if (!part_.has(block.block.since)) return;
  never_freed_blocks_++;
  never_freed_bytes_ += block.block.size;
  largest_never_freed_.add(block);
}

void Memory::finish(const TraceFacts& facts) {
  duration_ = facts.duration();
  if (!begun_) begin_part();
  blocks_.finish();
  driver_.finish();
  frees_left_out_ = facts.leaves_out("frees");
  memory_.live().each([&](const Block& block) {
    if (!not_wanted_.contains(block.number))
      keep_never_freed({block, Fate::still_held, until(block.since, duration_)});
  });
  never_freed_ = largest_never_freed_.take();
  find_holders();
  find_asked();
  if (!part_.is_whole())
    std::erase_if(holders_, [](const Holder& holder) {
      return std::none_of(holder.kinds.begin(), holder.kinds.end(),
                          [](const MemoryFigures& figures) { return figures.any(); });
    });
  std::sort(holders_.begin(), holders_.end(), [](const Holder& a, const Holder& b) {
    return std::tuple(b.peaks[0].bytes(), b.peaks[1].bytes(), a.pid) <
           std::tuple(a.peaks[0].bytes(), a.peaks[1].bytes(), b.pid);
  });
}

void Memory::find_holders() {
  memory_.live().each([&](const Block& block) {
    if (block.since >= part_.to || not_wanted_.contains(block.number)) return;
    auto side = static_cast<std::size_t>(side_of(block.kind));
    for (Holder* holder : {&all_, &holder_of(block)})
      holder->peaks[side].still_live(block, origin_of(block).holder);
  });
  for (std::size_t side = 0; side < SIDES; side++) {
    all_.at_peak[side] = all_.peaks[side].take_holders();
    for (Holder& holder : holders_) holder.at_peak[side] = holder.peaks[side].take_holders();
  }
}

std::vector<Memory::Churn> Memory::churn() const {
  std::vector<Churn> sizes;
  for (const auto& [size, churn] : churn_)
    if (churn.allocations > 1 && churn.frees) sizes.push_back(churn);
  std::sort(sizes.begin(), sizes.end(), [](const Churn& a, const Churn& b) {
    return std::tuple(!a.size, b.frees, a.size) < std::tuple(!b.size, a.frees, b.size);
  });
  return sizes;
}

std::vector<Memory::Level> Memory::columns(const Curve& curve, std::size_t count) const {
  std::vector<Level> columns(count);
  std::uint64_t span = end() - begin();
  Level before;
  before.set({});
  for (std::size_t column = 0; column < count; column++) {
    auto time_at = [&](std::size_t at) { return span / count * at + span % count * at / count; };
    Level& level = columns[column];
    level.set(before.last);
    std::size_t end = time_at(column + 1) / curve.width() + (column + 1 == count);
    std::size_t at = time_at(column) / curve.width();
    for (end = std::max(end, at + 1); at < std::min(end, curve.size()); at++)
      level.merge(curve[at]);
    before = level;
  }
  return columns;
}

}  // namespace cudabpf::analyze
