#include "cudabpf/function_filter.hpp"

#include <algorithm>

#include "util/text/glob.hpp"

namespace cudabpf {

namespace {

std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

bool FunctionFilter::selects(ApiId library) const {
  if (libraries.empty()) {
    Traced traced = api(library).traced;
    return traced == Traced::always || (traced == Traced::with_shapes ? shapes : blocks);
  }
  return std::find(libraries.begin(), libraries.end(), library) != libraries.end();
}

bool FunctionFilter::selects(const Function& function) const {
  if (!selects(function.api)) return false;
  auto matches = [&](const std::vector<std::string>& patterns) {
    return glob_match_any(patterns, function.name) || glob_match_any(patterns, function.symbol);
  };
  if (matches(exclude)) return false;
  // A function that the user names is traced whatever the profile.
  if (!only.empty()) return matches(only);
  return function.profile <= profile;
}

bool FunctionFilter::selects_some_of(ApiId library) const {
  const auto& functions = cuda_functions();
  return std::any_of(functions.begin(), functions.end(), [&](const Function& function) {
    return function.api == library && selects(function);
  });
}

const Function* FunctionFilter::meant() const {
  std::vector<std::string> patterns;
  for (const std::string& pattern : only) patterns.push_back(in_lower_case(pattern));
  for (const Function& function : cuda_functions())
    for (std::string_view name : {function.name, function.symbol})
      if (glob_match_any(patterns, in_lower_case(name))) return &function;
  return nullptr;
}

bool FunctionFilter::entry_only(const Function& function) const {
  if (!returns || api(function.api).has_probes()) return true;
  return profile == Profile::light && function.entry_is_enough() && !stacks_follow;
}

Recorded FunctionFilter::records(const Function& function) const {
  bool launches = function.meaning.work == Work::launch;
  bool only_counted = tally && function.tally_is_enough() && !(single_launches && launches);
  bool follows = captured_collectives && (function.launches_graph() || function.joins_captures());
  if (selects(function) && only_counted)
    return follows ? Recorded::until_capture : Recorded::tallied;
  if (selects(function)) return entry_only(function) ? Recorded::entry : Recorded::whole;
  if (function.names != NamesEffect::forget) return Recorded::no;
  auto functions = cuda_functions();
  bool names = std::any_of(functions.begin(), functions.end(), [&](const Function& other) {
    return (other.type == Type::kernel || other.type == Type::graph) && selects(other);
  });
  return names ? Recorded::silently : Recorded::no;
}

}  // namespace cudabpf
