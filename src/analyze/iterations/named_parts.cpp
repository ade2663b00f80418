#include "analyze/iterations/named_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "util/exit_codes.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::analyze {

namespace {

Error usage(std::string message, std::string hint) {
  return {std::move(message), std::move(hint), exit_code::USAGE};
}

Error nothing_found() {
  return usage("no call of a traced process is in the trace: it has no phases and no iterations",
               {});
}

// Letters alone, in lower case.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

bool is_stretch(const Phase& phase) { return phase.seen && phase.end; }

std::string names_of(const std::vector<Phase>& phases, bool (*which)(const Phase&)) {
  std::string names;
  for (const Phase& phase : phases)
    if (which(phase)) names += (names.empty() ? "" : ", ") + phase.name;
  return names;
}

// Its place in the list.
Result<std::size_t> find_phase(const std::vector<Phase>& phases, const std::string& wanted) {
  std::string letters = letters_of(wanted);
  std::string those = "this trace has " + names_of(phases, is_stretch);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < phases.size() && !letters.empty(); i++) {
    std::string name = letters_of(phases[i].name);
    if (name == letters) found = {i};
    if (name == letters) break;
    if (name.starts_with(letters)) found.push_back(i);
  }
  if (found.size() > 1)
    return usage(fmt::format("--phase {}: this may be {} or {}", wanted, phases[found[0]].name,
                             phases[found[1]].name),
                 "give more of its name");
  if (found.empty()) return usage(fmt::format("--phase {}: there is no such phase", wanted), those);
  const Phase& phase = phases[found.front()];
  if (!phase.seen)
    return usage(fmt::format("--phase {}: not in this trace: {}", phase.name, phase.note), those);
  if (!phase.end)
    return usage(fmt::format("--phase {}: these are calls out of several phases, and no stretch of "
                             "time",
                             phase.name),
                 those);
  if (phase.begin == phase.end)
    return usage(fmt::format("--phase {}: it is empty in this trace", phase.name), those);
  return found.front();
}

// 0: it is no number, or none that an iteration can have.
std::uint64_t iteration_in(std::string_view text, std::uint64_t last) {
  if (text == "last") return last;
  return whole_number<std::uint64_t>(text).value_or(0);
}

}  // namespace

Result<NamedPart> part_of_phases(const Execution& execution,
                                 const std::vector<std::string>& wanted) {
  if (!execution.thread()) return nothing_found();
  const std::vector<Phase>& phases = execution.phases().phases;
  std::vector<std::size_t> found;
  found.reserve(wanted.size());
  for (const std::string& name : wanted) found.push_back(TRY(find_phase(phases, name)));
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  NamedPart named{{phases[found.front()].begin, phases[found.back()].end}, {}};
  std::uint64_t until = named.part.from;
  for (std::size_t place : found) {
    const Phase& phase = phases[place];
    if (phase.begin != until)
      return usage("--phase: something else is between these phases",
                   "their order is: " + names_of(phases, is_stretch));
    until = phase.end;
    named.name += (named.name.empty() ? "" : ", ") + phase.name;
  }
  return named;
}

Result<NamedPart> part_of_iterations(const Execution& execution, const std::string& wanted) {
  if (!execution.thread()) return nothing_found();
  const std::vector<Iteration>& each = execution.iterations().each;
  if (each.empty())
    return usage("--iteration " + wanted + ": no iterations were found",
                 "no sequence of different kernels repeats at least three times");
  std::size_t hyphen = wanted.find('-');
  std::uint64_t last = each.size(), first = iteration_in(wanted.substr(0, hyphen), last);
  std::uint64_t until =
      hyphen == std::string::npos ? first : iteration_in(wanted.substr(hyphen + 1), last);
  if (!first || !until || until < first)
    return usage("--iteration " + wanted + ": neither a number nor a range",
                 "give it as 3, 10-20, last or 30-last; the first is 1");
  if (until > last)
    return usage(
        "--iteration " + wanted + ": there is no such iteration",
        fmt::format("this trace has {}: 1 to {}", count_of(last, "iteration", "iterations"), last));
  std::uint64_t from = each[first - 1].begin, to = each[until - 1].end;
  return NamedPart{{from, std::max(from, to)},
                   first == until ? fmt::format("iteration {} of {}", first, last)
                                  : fmt::format("iterations {} to {} of {}", first, until, last)};
}

}  // namespace cudabpf::analyze
