#include "collect/functions.hpp"

#include <algorithm>

#include "util/text/glob.hpp"

namespace cudabpf {

bool FunctionFilter::selects(const Function& function) const {
  auto matches = [&](const std::vector<std::string>& patterns) {
    return glob_match_any(patterns, function.name) || glob_match_any(patterns, function.symbol);
  };
  if (matches(exclude)) return false;
  // Whoever asks for a function by name gets it, whatever the profile.
  if (!only.empty()) return matches(only);
  return function.profile <= profile;
}

bool FunctionFilter::entry_only(const Function& function) const {
  return !returns || (profile == Profile::light && function.entry_is_enough());
}

Recorded FunctionFilter::records(const Function& function) const {
  if (selects(function)) return entry_only(function) ? Recorded::entry : Recorded::whole;
  if (function.names != NamesEffect::forget) return Recorded::no;
  auto functions = cuda_functions();
  bool names = std::any_of(functions.begin(), functions.end(), [&](const Function& other) {
    return (other.type == "kernel" || other.type == "graph") && selects(other);
  });
  return names ? Recorded::silently : Recorded::no;
}

std::optional<FunctionNumbers::Numbered> FunctionNumbers::number(std::string_view symbol) {
  constexpr std::size_t NUMBERS = 1 << 16;
  auto table = cuda_functions();
  if (const Function* known = find_function(symbol))
    return Numbered{static_cast<std::uint16_t>(known - table.data()), known};
  std::lock_guard lock(mutex_);
  auto known = by_symbol_.find(symbol);
  if (known != by_symbol_.end())
    return Numbered{known->second, &unknown_[known->second - table.size()].function};
  std::size_t id = table.size() + unknown_.size();
  if (id >= NUMBERS) return std::nullopt;
  Unknown& added = unknown_.emplace_back();
  added.symbol = symbol;
  added.function = unknown_function(added.symbol);
  by_symbol_.emplace(added.symbol, static_cast<std::uint16_t>(id));
  return Numbered{static_cast<std::uint16_t>(id), &added.function};
}

const Function* FunctionNumbers::find(std::uint16_t id) const {
  auto table = cuda_functions();
  if (id < table.size()) return &table[id];
  std::lock_guard lock(mutex_);
  std::size_t at = id - table.size();
  return at < unknown_.size() ? &unknown_[at].function : nullptr;
}

}  // namespace cudabpf
