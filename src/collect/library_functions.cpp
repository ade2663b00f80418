#include "collect/library_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collect/libraries.hpp"
#include "collect/probe_plan.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf {

namespace {

// A driver newer than the table has a few dozen more functions. Without a limit, a crafted file
// could take all numbers, and endless time.
constexpr std::uint32_t MOST_UNKNOWN = 1024;

}  // namespace

bool is_driver_function(std::string_view name) {
  bool named_so = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  return named_so || find_function(name);
}

std::string why_no_libcuda(const elf::Contents& contents, bool named) {
  const auto& functions = contents.functions;
  auto exports = [&](auto condition) {
    return std::any_of(functions.begin(), functions.end(),
                       [&](const elf::Function& f) { return condition(f.name); });
  };
  if (functions.empty()) return "it exports no function whose name begins with cu";
  if (named) {
    bool any = exports([](std::string_view name) { return find_function(name) != nullptr; });
    return any ? "" : "it exports no function of the driver API";
  }
  constexpr const char* NAME_IT = " (name it with --library to trace it)";
  if (!exports([](std::string_view name) { return name == "cuInit"; }))
    return std::string("it is not a libcuda: it does not export cuInit") + NAME_IT;
  if (!is_libcuda(contents.soname))
    return std::string("it is not a libcuda: its SONAME is not libcuda's") + NAME_IT;
  return {};
}

Error no_such_library(const std::string& path) {
  return {fmt::format("--library {}: there is no such file, or it cannot be read", path),
          "`cudabpf doctor` lists those that are found without it", exit_code::NO_TARGET};
}

Error nothing_selected(const FunctionFilter& filter) {
  const Function* meant = filter.meant();
  return {"the profile and patterns select no function of any libcuda",
          meant ? fmt::format("the case of letters matters: there is {}", meant->name)
                : "`cudabpf functions` lists their names; patterns match whole names",
          exit_code::USAGE};
}

std::vector<PlannedProbe> plan_probes(const elf::Contents& contents, bool named,
                                      const FunctionFilter& filter, FunctionNumbers& numbers,
                                      Library& library) {
  library.build_id = contents.build_id;
  library.error = why_no_libcuda(contents, named);
  if (!library.error.empty()) return {};
  library.left_out = static_cast<std::uint32_t>(contents.left_out);
  auto functions = contents.functions;
  std::erase_if(functions, [](const auto& f) { return !is_driver_function(f.name); });
  // By name, so that if two names share an address, the newest ABI's (cuMemAlloc_v2) is last and
  // wins.
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::map<std::uint64_t, FunctionNumbers::Numbered> by_offset;
  std::uint32_t unknown = 0;
  for (const elf::Function& exported : functions) {
    const Function* known = find_function(exported.name);
    Recorded recorded = filter.records(known ? *known : unknown_function(exported.name));
    if (recorded == Recorded::no || recorded == Recorded::silently) library.skipped++;
    if (recorded == Recorded::no) continue;
    std::optional<FunctionNumbers::Numbered> numbered;
    if (known || unknown++ < MOST_UNKNOWN) numbered = numbers.number(exported.name);
    if (!numbered) {
      library.left_out++;
      continue;
    }
    auto [at, added] = by_offset.try_emplace(exported.offset, *numbered);
    bool hides = recorded == Recorded::silently && filter.selects(*at->second.function);
    if (!added && !hides && known) at->second = *numbered;
  }
  std::vector<PlannedProbe> probes;
  for (const auto& [offset, numbered] : by_offset) {
    const Function& function = *numbered.function;
    bool known = find_function(function.symbol) != nullptr;
    if (!known) library.unknown++;
    Recorded recorded = filter.records(function);
    library.functions += recorded != Recorded::silently;
    PlannedProbe probe{offset,
                       known ? plan_for(function, numbered.id) : plan_for_unknown(numbered.id),
                       function.launches_kernel(), recorded == Recorded::tallied};
    probe.plan.entry_only = recorded != Recorded::whole && !probe.tallied;
    probes.push_back(probe);
  }
  if (!library.functions) library.error = SELECTS_NOTHING;
  return probes;
}

}  // namespace cudabpf
