#include "analyze/collectives/matches.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace cudabpf::analyze {

void Matches::add(const CollectiveRun& run, const TracedCommunicator& communicator) {
  const CollectiveCall& first = run.calls.front();
  if (!run.is_counted()) return;
  if (run.launch <= 1)
    for (const CollectiveCall& call : run.calls) compare(call, *communicator.identity);
  if (ranks_ >= bounds_.ranks) {
    left_out_++;
    return;
  }
  Key key(*communicator.identity, first.seq, run.launch);
  auto [at, is_new] = open_.try_emplace(key);
  Match& match = at->second;
  if (is_new) {
    opened_.push_back(key);
    std::tie(match.identity, match.seq, match.launch) = key;
    match.op = first.op;
    match.root = first.root;
    match.is_barrier = run.is_barrier();
    match.is_first = first.seq == 1 && run.launch <= 1;
  }
  match.ranks.push_back({first.communicator, run.process, run.ts, run.end, run.gpu});
  ranks_++;
  if (open_.size() > bounds_.open) close_first();
}

void Matches::close_first() {
  auto first = open_.extract(opened_.front());
  opened_.pop_front();
  all_.push_back(std::move(first.mapped()));
}

void Matches::finish() {
  while (!opened_.empty()) close_first();
  std::ranges::sort(all_, {}, [](const Match& match) {
    return std::tuple(match.identity, match.seq, match.launch);
  });
}

void Matches::compare(const CollectiveCall& call, std::uint64_t identity) {
  std::pair key(identity, call.seq);
  auto [at, is_new] = asked_.try_emplace(key, Asked{call, call.communicator});
  if (!is_new) return differ(call, at->second, identity);
  asked_order_.push_back(key);
  if (asked_.size() <= bounds_.open) return;
  asked_.erase(asked_order_.front());
  asked_order_.pop_front();
}

void Matches::differ(const CollectiveCall& call, const Asked& first, std::uint64_t identity) {
  auto note = [&](const char* field, const std::string& has, const std::string& other_has) {
    mismatches_.add(
        {identity, call.seq, first.communicator, call.communicator, field, has, other_has, {}});
  };
  auto words = [&](const char* field, Name has, Name other) {
    std::string text(names_.text(has)), other_text(names_.text(other));
    if (has && other && has != other) note(field, text, other_text);
  };
  auto numbers = [&](const char* field, std::int64_t has, std::int64_t other) {
    if (has >= 0 && other >= 0 && has != other)
      note(field, std::to_string(has), std::to_string(other));
  };
  if (first.call.op != call.op) return words("function", first.call.op, call.op);
  if (first.call.count != call.count)
    note("count", std::to_string(first.call.count), std::to_string(call.count));
  words("datatype", first.call.datatype, call.datatype);
  numbers("root", first.call.root, call.root);
  // A reduction that the program made has a number, which is each rank's own.
  auto is_made = [&](Name reduction) {
    std::string_view text = names_.text(reduction);
    return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-');
  };
  if (!is_made(first.call.reduction) && !is_made(call.reduction))
    words("reduction", first.call.reduction, call.reduction);
}

}  // namespace cudabpf::analyze
