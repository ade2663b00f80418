#include "analyze/collectives/communicators.hpp"

#include <algorithm>
#include <tuple>

#include "trace/read/handles.hpp"
#include "util/limited.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

// Lines say what is known by then, so the last one says all.
void Communicators::line(const Line& line) {
  if (line.kind != LineKind::communicator || !line.has(Field::communicator)) return;
  if (!has_room_for(all_, line.communicator, most_)) {
    left_out_++;
    return;
  }
  auto json = parsed(line.text);
  TracedCommunicator one;
  one.number = line.communicator;
  one.pid = line.pid;
  one.host = line.host;
  if (auto identity = handle_in(line.text, "identity")) one.identity = identity;
  one.rank = number_in<std::uint32_t>(json, "rank");
  one.ranks = number_in<std::uint32_t>(json, "ranks");
  if (line.has(Field::ordinal)) one.device = line.ordinal;
  one.from = number_in<std::uint64_t>(json, "from").value_or(0);
  one.ordinal = number_in<std::uint64_t>(json, "ordinal").value_or(0);
  one.color = integer_in(json, "color");
  one.key = integer_in(json, "key");
  one.late = flag_in(json, "late").value_or(false);
  one.lost = flag_in(json, "calls_lost").value_or(false);
  all_[line.communicator] = one;
}

const TracedCommunicator* Communicators::find(std::uint64_t number) const {
  auto at = all_.find(number);
  return at == all_.end() ? nullptr : &at->second;
}

std::map<std::uint64_t, Communicators::OfIdentity> Communicators::by_identity() const {
  std::map<std::uint64_t, OfIdentity> all;
  for (const auto& [number, one] : all_)
    if (one.identity) all[*one.identity].push_back(&one);
  return all;
}

namespace {

bool has_all_ranks(const Communicators::OfIdentity& members) {
  std::set<std::uint32_t> ranks;
  for (const TracedCommunicator* one : members)
    if (one->rank && one->ranks == members.front()->ranks) ranks.insert(*one->rank);
  return ranks.size() == members.size() && members.front()->ranks == members.size();
}

}  // namespace

void Communicators::work_out_ranks() {
  auto all = by_identity();
  bool more = true;
  for (int split = 0; more && split < MAX_SPLITS; split++) {
    std::set<std::uint64_t> complete;
    for (const auto& [identity, members] : all)
      if (has_all_ranks(members)) complete.insert(identity);
    more = false;
    for (const auto& [identity, members] : all) more |= work_out(members, complete);
  }
}

// Color is part of the identity: all members asked for the same part. Whoever has the same key
// comes in the order of the ranks that they had.
bool Communicators::work_out(const OfIdentity& members, const std::set<std::uint64_t>& complete) {
  auto is_open = [](const TracedCommunicator* one) { return !one->rank; };
  if (std::ranges::none_of(members, is_open)) return false;
  using Place = std::tuple<std::int64_t, std::uint32_t, std::uint64_t>;  // the last: its number
  std::vector<Place> places;
  for (const TracedCommunicator* one : members) {
    const TracedCommunicator* parent = find(one->from);
    if (!one->key || !one->color || one->late || !parent || !parent->identity || !parent->rank ||
        !complete.contains(*parent->identity))
      return false;
    if (one->ranks && *one->ranks != members.size()) return false;
    places.emplace_back(*one->key, *parent->rank, one->number);
  }
  std::ranges::sort(places);
  for (std::uint32_t rank = 0; const auto& [key, of_parent, number] : places) {
    auto known = find(number)->rank;
    if (known && *known != rank) return false;
    rank++;
  }
  for (std::uint32_t rank = 0; const auto& [key, of_parent, number] : places) {
    TracedCommunicator& one = all_.at(number);
    one.rank_worked_out |= !one.rank;
    one.rank = rank++;
    one.ranks = static_cast<std::uint32_t>(members.size());
  }
  return true;
}

}  // namespace cudabpf::analyze
