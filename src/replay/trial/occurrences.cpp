#include "replay/trial/occurrences.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/console/terminal.hpp"
#include "util/demangle/demangle.hpp"
#include "util/text/glob.hpp"

namespace cudabpf::replay {

namespace {

// A copy of one row between the GPU and the host, whose bytes the folder has.
std::optional<Occurrence::Part> part_of_copy(const bundle::Copy& copy) {
  const auto& address = copy.to.address ? copy.to.address : copy.from.address;
  bool is_with_host = copy.to.address.has_value() != copy.from.address.has_value();
  if (!is_with_host || !copy.data || copy.rows.height != 1 || copy.rows.depth != 1 ||
      !copy.rows.width)
    return std::nullopt;
  return Occurrence::Part{{address->value, address->value + copy.rows.width}, *copy.data};
}

bool is_within(const bundle::Set& set, const std::vector<Occurrence::Part>& given) {
  std::uint64_t at = set.to.address->value;
  return set.rows.height == 1 && set.rows.depth == 1 &&
         have(ranges_of(given), {at, at + set.rows.bytes()});
}

bool are_independent(const std::vector<Occurrence>& all) {
  std::vector<Range> given = ranges_of(all.front().in);
  return std::all_of(all.begin(), all.end(), [&](const Occurrence& one) {
    std::vector<Range> left = ranges_of(one.out);
    return ranges_of(one.in) == given &&
           std::all_of(left.begin(), left.end(),
                       [&](const Range& out) { return have(given, out); });
  });
}

}  // namespace

std::vector<Range> ranges_of(const std::vector<Occurrence::Part>& parts) {
  std::vector<Range> all;
  all.reserve(parts.size());
  for (const Occurrence::Part& part : parts) all.push_back(part.range);
  return merged(std::move(all));
}

std::optional<std::vector<Occurrence>> occurrences_in(const Tape& tape, const Manifest& manifest) {
  std::vector<Occurrence> all;
  Occurrence next;  // whose launch is still to come
  const std::string* name = nullptr;
  for (std::size_t i = 0; i < tape.steps().size(); i++) {
    const Step& step = tape.steps()[i];
    if (!refusal_of(step, manifest).empty()) return std::nullopt;
    if (step.launch) {
      const std::string& of = manifest.kernels[step.launch->kernel].name;
      if (name && of != *name) return std::nullopt;
      name = &of;
      next.step = i;
      all.push_back(std::exchange(next, {}));
      continue;
    }
    // What it leaves has been copied there already.
    if (step.set && is_within(*step.set, next.in)) continue;
    auto part = step.copy ? part_of_copy(*step.copy) : std::nullopt;
    if (!part) return std::nullopt;
    if (step.copy->to.address)
      next.in.push_back(*part);
    else if (all.empty() || !next.in.empty())
      return std::nullopt;
    else
      all.back().out.push_back(*part);
  }
  if (all.empty() || !next.in.empty() || all.front().in.empty() || !are_independent(all))
    return std::nullopt;
  return all;
}

bool is_named(const std::string& pattern, const std::string& mangled) {
  std::string whole = demangle(mangled);
  return glob_match(pattern, whole) || glob_match(pattern, short_name(whole)) ||
         glob_match(pattern, mangled);
}

Result<std::string> kernel_like(const std::string& pattern, const Tape& tape,
                                const Manifest& manifest) {
  constexpr std::size_t SHOWN = 12;
  std::vector<bool> is_launched(manifest.kernels.size());
  for (const Step& step : tape.steps())
    if (step.launch) is_launched[step.launch->kernel] = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < is_launched.size(); i++) {
    if (!is_launched[i]) continue;
    const std::string& name = manifest.kernels[i].name;
    bool is_wanted = pattern.empty() || is_named(pattern, name);
    if (is_wanted && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  if (names.empty())
    return Error{
        pattern.empty() ? "the capture has no launches" : "no kernel's name is like " + pattern,
        "see --list", exit_code::NO_TARGET};
  if (names.size() == 1) return names.front();
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), SHOWN); i++) {
    std::string whole = demangle(names[i]), name = short_name(whole);
    // Instances of a template have the same short name.
    bool is_alone = std::count_if(names.begin(), names.end(), [&](const std::string& other) {
                      return short_name(demangle(other)) == name;
                    }) == 1;
    list += (list.empty() ? "" : ", ") + (is_alone ? name : name + " (" + names[i] + ")");
  }
  if (names.size() > SHOWN) list += fmt::format(" and {} more", names.size() - SHOWN);
  return Error{
      fmt::format("{} kernels {}: {}", names.size(),
                  pattern.empty() ? "are in the capture" : "have names that are like " + pattern,
                  list),
      "give a pattern that only one of them is like; mangled names will do, too",
      exit_code::NO_TARGET};
}

}  // namespace cudabpf::replay
