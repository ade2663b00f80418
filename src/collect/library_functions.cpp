#include "collect/library_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collect/libraries.hpp"
#include "collect/probe_arguments.hpp"
#include "collect/probe_plan.hpp"
#include "cudabpf/static_probes.h"
#include "util/exit_codes.hpp"

namespace cudabpf {

elf::Wanted contents_wanted(const Api& api) {
  elf::Wanted wanted;
  api.prefix.copy(wanted.prefix, sizeof(wanted.prefix) - 1);
  wanted.probes = api.has_probes();
  return wanted;
}

bool belongs_to(const Api& api, std::string_view name) {
  std::size_t begins = api.prefix.size();
  if (name.size() > begins && name.starts_with(api.prefix) && name[begins] >= 'A' &&
      name[begins] <= 'Z')
    return true;
  const Function* known = find_function(name);
  return known && known->api == api.id;
}

namespace {

constexpr std::string_view NAME_IT = " (name it with --library to trace it)";

// A library may have been built without its probes.
std::string why_without_probes(const Api& api, const elf::Contents& contents, bool named) {
  auto is_proof = [&](const elf::StaticProbe& probe) { return probe.name == api.proof; };
  if (std::ranges::none_of(contents.probes, is_proof))
    return fmt::format("it has no USDT probe {}", api.proof);
  if (!named && api_of_file(contents.soname) != &api)
    return fmt::format("it is not a {0}: its SONAME is not {0}'s{1}", api.library(), NAME_IT);
  return {};
}

// A device of two bytes is a c10::Device, which has a type, too.
bool has_ordinals(const Function& function, const std::vector<abi::cb_read>& reads) {
  for (std::size_t i = 0; i < reads.size(); i++)
    if (function.arguments[i].role == Role::device && (reads[i].count & ~CB_SIGNED) == 2)
      return false;
  return true;
}

// The places of its probes, each once.
std::vector<PlannedProbe> plan_static_probes(const elf::Contents& contents,
                                             const FunctionFilter& filter, Library& library) {
  std::vector<PlannedProbe> probes;
  std::set<std::uint64_t> known;
  std::set<const Function*> traced;
  auto table = cuda_functions();
  for (const elf::StaticProbe& probe : contents.probes) {
    const Function* function = find_function(probe.name);
    if (!function || !filter.selects(*function)) {
      library.skipped++;
      continue;
    }
    if (!known.insert(probe.offset).second) continue;
    auto reads = reads_of_probe(contents.machine, probe.arguments, function->arguments.size());
    if (!reads || !has_ordinals(*function, *reads)) {
      library.left_out++;
      continue;
    }
    traced.insert(function);
    PlannedProbe planned{plan_for(*function, static_cast<std::uint16_t>(function - table.data())),
                         probe.offset, false, false, probe.semaphore};
    planned.plan.entry_only = true;
    planned.reads = std::move(*reads);
    probes.push_back(std::move(planned));
  }
  library.functions = static_cast<std::uint32_t>(traced.size());
  if (probes.empty())
    library.error =
        library.left_out ? "how its USDT probes are to be read is not understood" : SELECTS_NOTHING;
  return probes;
}

}  // namespace

std::string why_refused(const Api& api, const elf::Contents& contents, bool named) {
  if (api.has_probes()) return why_without_probes(api, contents, named);
  const auto& functions = contents.functions;
  auto exports = [&](auto condition) {
    return std::any_of(functions.begin(), functions.end(),
                       [&](const elf::Function& f) { return condition(f.name); });
  };
  if (functions.empty())
    return fmt::format("it exports no function whose name begins with {}", api.prefix);
  if (named) {
    bool any = exports([&](std::string_view name) {
      const Function* known = find_function(name);
      return known && known->api == api.id;
    });
    return any ? "" : fmt::format("it exports no known function of {}", api.library());
  }
  if (!exports([&](std::string_view name) { return name == api.proof; }))
    return fmt::format("it is not a {}: it does not export {}{}", api.library(), api.proof,
                       NAME_IT);
  if (api_of_file(contents.soname) != &api)
    return fmt::format("it is not a {0}: its SONAME is not {0}'s{1}", api.library(), NAME_IT);
  return {};
}

Error no_such_library(const std::string& path) {
  return {fmt::format("--library {}: there is no such file, or it cannot be read", path),
          "`cudabpf doctor` lists those that are found without it", exit_code::NO_TARGET};
}

Error nothing_selected(const FunctionFilter& filter) {
  const Function* meant = filter.meant();
  return {"the profile and patterns select no function of any library",
          meant ? fmt::format("the case of letters matters: there is {}", meant->name)
                : "`cudabpf functions` lists their names; patterns match whole names",
          exit_code::USAGE};
}

std::vector<PlannedProbe> plan_probes(const Api& api, const elf::Contents& contents, bool named,
                                      const FunctionFilter& filter, FunctionNumbers& numbers,
                                      Library& library) {
  library.build_id = contents.build_id;
  library.error = why_refused(api, contents, named);
  if (!library.error.empty()) return {};
  library.left_out = static_cast<std::uint32_t>(contents.left_out);
  if (api.has_probes()) return plan_static_probes(contents, filter, library);
  auto functions = contents.functions;
  std::erase_if(functions, [&](const auto& f) { return !belongs_to(api, f.name); });
  // By name, so that if two names share an address, the newest ABI's (cuMemAlloc_v2) is last and
  // wins.
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::map<std::uint64_t, FunctionNumbers::Numbered> by_offset;
  std::uint32_t unknown = 0;
  for (const elf::Function& exported : functions) {
    const Function* known = find_function(exported.name);
    if (!known && !api.most_unknown) {
      library.skipped++;
      continue;
    }
    Recorded recorded = filter.records(known ? *known : unknown_function(api.id, exported.name));
    if (recorded == Recorded::no || recorded == Recorded::silently) library.skipped++;
    if (recorded == Recorded::no) continue;
    std::optional<FunctionNumbers::Numbered> numbered;
    // Without a limit, a crafted file could take all numbers, and endless time.
    if (known || unknown++ < api.most_unknown) numbered = numbers.number(api.id, exported.name);
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
    PlannedProbe probe{known ? plan_for(function, numbered.id) : plan_for_unknown(numbered.id),
                       offset, function.launches_kernel(),
                       recorded == Recorded::tallied || recorded == Recorded::until_capture};
    probe.plan.entry_only = recorded != Recorded::whole && !probe.tallied;
    probe.plan.holder = filter.holders && recorded == Recorded::whole && !probe.plan.entry_only &&
                        function.allocates();
    probe.plan.until_capture = recorded == Recorded::until_capture;
    probe.plan.begins_capture =
        filter.captured_collectives && function.graph == GraphAction::begin_capture;
    probes.push_back(std::move(probe));
  }
  if (!library.functions) library.error = SELECTS_NOTHING;
  return probes;
}

}  // namespace cudabpf
