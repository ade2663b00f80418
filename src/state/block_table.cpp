#include "state/block_table.hpp"

#include "util/hash.hpp"

namespace cudabpf {

std::size_t BlockTable::slot_of(std::uint64_t process, std::uint64_t key) const {
  return hash_of(process, key) & (slots_.size() - 1);
}

BlockTable::Place BlockTable::find(std::uint64_t process, std::uint64_t key) const {
  Place at = slots_[slot_of(process, key)];
  while (at != NONE && (held_[at].key != key || process_of(held_[at]) != process))
    at = held_[at].next;
  return at;
}

BlockTable::Place BlockTable::add(std::uint64_t process, std::uint64_t context, const Held& held) {
  if (size_ == slots_.size()) grow();
  Place place = static_cast<Place>(held_.size());
  if (free_.empty()) {
    held_.push_back(held);
  } else {
    place = free_.back();
    free_.pop_back();
    held_[place] = held;
  }
  Held& added = held_[place];
  added.group = group(process, context);
  Place& first = groups_[added.group].first;
  added.previous_in_group = NONE;
  added.next_in_group = first;
  if (first != NONE) held_[first].previous_in_group = place;
  first = place;
  Place& slot = slots_[slot_of(process, held.key)];
  added.next = slot;
  slot = place;
  size_++;
  return place;
}

void BlockTable::remove(Place place) {
  const Held& held = held_[place];
  Group& group = groups_[held.group];
  Place* link = &slots_[slot_of(group.process, held.key)];
  while (*link != place) link = &held_[*link].next;
  *link = held.next;
  if (held.next_in_group != NONE)
    held_[held.next_in_group].previous_in_group = held.previous_in_group;
  if (held.previous_in_group != NONE)
    held_[held.previous_in_group].next_in_group = held.next_in_group;
  else
    group.first = held.next_in_group;
  if (group.first == NONE) {
    free_groups_.push_back(held.group);
    group_of_.erase({group.process, group.context});
  }
  free_.push_back(place);
  size_--;
}

std::vector<BlockTable::Place> BlockTable::of_context(std::uint64_t process,
                                                      std::uint64_t context) const {
  std::vector<Place> places;
  auto of = group_of_.find({process, context});
  if (of == group_of_.end()) return places;
  for (Place at = groups_[of->second].first; at != NONE; at = held_[at].next_in_group)
    places.push_back(at);
  return places;
}

std::vector<BlockTable::Place> BlockTable::of_process(std::uint64_t process) const {
  std::vector<Place> places;
  for (auto of = group_of_.lower_bound({process, 0});
       of != group_of_.end() && of->first.first == process; ++of)
    for (Place at = groups_[of->second].first; at != NONE; at = held_[at].next_in_group)
      places.push_back(at);
  return places;
}

BlockTable::Place BlockTable::group(std::uint64_t process, std::uint64_t context) {
  auto [at, is_new] = group_of_.try_emplace({process, context}, NONE);
  if (!is_new) return at->second;
  if (free_groups_.empty()) {
    at->second = static_cast<Place>(groups_.size());
    groups_.emplace_back();
  } else {
    at->second = free_groups_.back();
    free_groups_.pop_back();
  }
  groups_[at->second] = {process, context, NONE};
  return at->second;
}

void BlockTable::grow() {
  std::vector<Place> old(slots_.size() * 2, NONE);
  old.swap(slots_);
  for (Place first : old)
    for (Place at = first; at != NONE;) {
      Held& held = held_[at];
      Place& slot = slots_[slot_of(process_of(held), held.key)];
      Place next = std::exchange(held.next, slot);
      slot = at;
      at = next;
    }
}

}  // namespace cudabpf
