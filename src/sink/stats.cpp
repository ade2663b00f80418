#include "sink/stats.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cudabpf/between_gpus.hpp"
#include "sink/event_lines.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

namespace {

// How many a summary tells apart. The rest are added up as one, since programs choose names,
// results and functions freely.
constexpr std::size_t MOST_KERNELS = 4096, MOST_OTHERS = 1024;
constexpr const char* OTHERS = "(others)";

// The entry for `key`, or the one for all others once there are too many.
template <typename Map>
auto& place_of(Map& map, typename Map::key_type key, std::size_t most,
               const typename Map::key_type& others) {
  if (map.size() >= most && !map.contains(key)) key = others;
  return *map.try_emplace(std::move(key)).first;
}

const Function& other_functions() {
  static const Function others = unknown_function(OTHERS);
  return others;
}

}  // namespace

struct StatsSink::OfFunction {
  enum class Effect : std::uint8_t { none, launch, graph, transfer };

  explicit OfFunction(const Function& function)
      : name(function.name), effect(effect_of(function)), memory(function) {}
  static Effect effect_of(const Function& function) {
    if (function.is_launch()) return Effect::launch;
    if (function.type == Type::graph && function.op == Op::launch) return Effect::graph;
    return function.type == Type::transfer ? Effect::transfer : Effect::none;
  }

  std::string name;
  Effect effect;
  RunMemory::Role memory;
  std::uint64_t count = 0;
  std::uint64_t errors = 0;
  Durations durations;
};

StatsSink::StatsSink() : known_(cuda_functions().size()) {}
StatsSink::~StatsSink() = default;

StatsSink::OfFunction& StatsSink::of(const Function& function) {
  auto table = cuda_functions();
  bool known = &function >= table.data() && &function < table.data() + table.size();
  if (known) {
    auto& of = known_[static_cast<std::size_t>(&function - table.data())];
    if (!of) of = std::make_unique<OfFunction>(function);
    return *of;
  }
  auto& [which, of] = place_of(others_, &function, MOST_OTHERS, &other_functions());
  if (!of) of = std::make_unique<OfFunction>(*which);
  return *of;
}

void StatsSink::begin(const Session& session) {
  inside_ = session.source == "inside";
  switches_why_not_ = session.sampling.switches_why_not;
  if (session.mode == "run") memory_.all_seen();
  for (const Library& library : session.libraries) this->library(library);
}

void StatsSink::call(const Call& call) {
  OfFunction& of = this->of(*call.function);
  count_++;
  of.count++;
  memory_.call(call, of.memory);
  if (call.has_return && !call.entry_lost) of.durations.add(call.duration);
  if (call.ioctls) {
    Stats::Caller& caller =
        place_of(driver_callers_, call.function->name, MOST_OTHERS, OTHERS).second;
    caller.calls++;
    caller.ioctls += call.ioctls;
    caller.time += call.ioctl_time;
  }
  if ((call.has_return || call.entry_lost) && call.result != 0) return failed(call, of);
  if (call.captured) return;  // it has not been done
  switch (of.effect) {
    case OfFunction::Effect::none:
      break;
    case OfFunction::Effect::launch:
      launched(call.kernel, 1);
      break;
    case OfFunction::Effect::graph:
      launched_graph(call);
      break;
    case OfFunction::Effect::transfer:
      moved(call);
      break;
  }
}

void StatsSink::failed(const Call& call, OfFunction& of) {
  if (!is_cuda_failure(call.result)) return;
  of.errors++;
  std::string_view name = of.name;
  place_of(errors_, {name, call.result}, MOST_OTHERS, {name, std::nullopt}).second++;
}

void StatsSink::launched_graph(const Call& call) {
  unknown_graphs_ += !call.graph;
  if (!call.graph) return;
  std::uint64_t unlisted = call.graph->kernels;
  for (const auto& [work, count] : call.graph->works) {
    if (work.what != NodeWork::kernel || work.conditional) continue;
    launched(work.kernel, count);
    unlisted -= std::min(unlisted, count);
  }
  if (unlisted) launched(nullptr, unlisted);
}

void StatsSink::launched(const KernelName* name, std::uint64_t count) {
  std::size_t slot = (reinterpret_cast<std::uintptr_t>(name) >> 4) % recent_launches_.size();
  Launched& recent = recent_launches_[slot];
  std::string_view text = name ? std::string_view(name->short_name) : std::string_view();
  if (recent.name != name || !recent.counter || recent.counter->first != text)
    recent = {name, &place_of(launches_, std::string(text), MOST_KERNELS, OTHERS)};
  recent.counter->second += count;
}

void StatsSink::moved(const Call& call) {
  const Details& details = call.details;
  Op op = details.op == Op::none ? call.function->op : details.op;
  std::pair<std::string, bool> what(to_string(op), call.function->async);
  if (details.src_device && details.src_device != details.dst_device)
    what.first = between_gpus(*details.src_device, *details.dst_device);
  if (!last_moved_ || last_moved_->first != what)
    last_moved_ = &place_of(moved_, what, MOST_OTHERS, {OTHERS, call.function->async});
  last_moved_->second.count++;
  last_moved_->second.bytes += details.size.value_or(0);
}

void StatsSink::driver_call(const DriverCall& call) {
  auto add = [&](std::map<std::string, Stats::Driver>& figures, std::string name) {
    auto& [known_as, of] = place_of(figures, std::move(name), MOST_OTHERS, OTHERS);
    if (of.name.empty()) of.name = known_as;
    of.count++;
    of.failed += call.result < 0 || call.status.value_or(0) != 0;
    if (call.has_return) of.durations.add(call.duration);
  };
  if (call.op != DriverCall::Op::ioctl) return add(driver_groups_, std::string(to_string(call.op)));
  const IoctlDetails& details = call.details;
  add(driver_groups_, std::string(to_string(details.group)));
  std::string name = name_or_number(details.name, details.number);
  if (details.control) name = name_or_number(details.control_name, *details.control);
  if (details.klass)
    name = (details.name == "NV_ESC_RM_FREE" ? "free " : "alloc ") +
           name_or_number(details.class_name, *details.klass);
  add(ioctls_, std::move(name));
}

void StatsSink::gpu_error(const GpuError& error) {
  auto& [what, xid] = place_of(xids_, {error.xid, error.device}, MOST_OTHERS, {0, OTHERS});
  std::tie(xid.number, xid.device) = what;
  if (what.second != OTHERS) xid.meaning = error.meaning;
  xid.count++;
}

void StatsSink::process(const Process& process) {
  processes_ += process.op == Process::Op::start || process.op == Process::Op::fork;
  memory_.process(process);
  if (!process.comm.empty()) gpus_.named(process.pid, process.comm);
}

std::vector<Stats::Calls> StatsSink::calls() const {
  std::vector<Stats::Calls> all;
  std::map<std::string_view, std::size_t> places;  // several symbols may be one API function
  auto add = [&](const OfFunction* of) {
    if (!of || !of->count) return;
    auto [at, is_new] = places.try_emplace(of->name, all.size());
    if (is_new) all.push_back({of->name, 0, 0, {}});
    Stats::Calls& sum = all[at->second];
    sum.count += of->count;
    sum.errors += of->errors;
    sum.durations.add(of->durations);
  };
  for (const auto& of : known_) add(of.get());
  for (const auto& [function, of] : others_) add(of.get());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.durations.total(), b.count, std::string_view(a.name)) <
           std::tuple(a.durations.total(), a.count, std::string_view(b.name));
  });
  return all;
}

Stats StatsSink::stats() const {
  Stats stats;
  stats.count = count_;
  stats.processes = processes_;
  stats.libraries = libraries_;
  stats.inside = inside_;
  stats.memory = memory_.figures();
  stats.memory_left_out = memory_.left_out();

  stats.calls = calls();

  for (const auto& [what, moved] : moved_)
    stats.transfers.push_back({what.first, what.second, moved.count, moved.bytes});
  std::stable_sort(stats.transfers.begin(), stats.transfers.end(),
                   [](const auto& a, const auto& b) {
                     return std::pair(a.bytes, a.count) > std::pair(b.bytes, b.count);
                   });

  stats.unknown_graphs = unknown_graphs_;
  for (const auto& [kernel, count] : launches_) stats.launches.push_back({kernel, count});
  std::sort(stats.launches.begin(), stats.launches.end(), [](const auto& a, const auto& b) {
    return std::tie(b.count, a.kernel) < std::tie(a.count, b.kernel);
  });

  for (const auto& [name, of] : driver_groups_) stats.driver_groups.push_back(of);
  std::stable_sort(
      stats.driver_groups.begin(), stats.driver_groups.end(),
      [](const auto& a, const auto& b) { return a.durations.total() > b.durations.total(); });
  for (const auto& [name, of] : ioctls_) stats.ioctls.push_back(of);
  std::stable_sort(stats.ioctls.begin(), stats.ioctls.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  for (const auto& [what, xid] : xids_) stats.xids.push_back(xid);
  stats.gpus = gpus_;
  stats.switches_why_not = switches_why_not_;
  for (const auto& [name, caller] : driver_callers_) {
    stats.driver_callers.push_back(caller);
    stats.driver_callers.back().name = name;
  }
  std::stable_sort(stats.driver_callers.begin(), stats.driver_callers.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });

  for (const auto& [what, count] : errors_) {
    std::string error(what.second ? cuda_error_name(*what.second) : OTHERS);
    if (error.empty()) error = fmt::format("unknown ({})", *what.second);
    stats.errors.push_back({std::string(what.first), std::move(error), count});
  }
  std::stable_sort(stats.errors.begin(), stats.errors.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return stats;
}

}  // namespace cudabpf
