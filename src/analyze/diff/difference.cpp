#include "analyze/diff/difference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "analyze/telling_names.hpp"
#include "analyze/trace/json_text.hpp"

namespace cudabpf::analyze {

namespace {

using Unit = Difference::Unit;

// The standard error of the median of this many durations with this spread. The spread is that
// between the quartiles, so that a long tail, which CUDA's durations have, does not hide a change
// in what is usual.
double standard_error(const Durations& times) {
  double spread =
      static_cast<double>(times.quantile(0.75)) - static_cast<double>(times.quantile(0.25));
  return 0.93 * spread / std::sqrt(static_cast<double>(times.count()));
}

std::uint64_t millionths(std::uint64_t part, std::uint64_t whole) {
  // A trace may claim that calls took more time than there was.
  return static_cast<std::uint64_t>(std::llround(share(std::min(part, whole), whole) * 10'000));
}

bool same(const Difference::Total& total) { return total.a == total.b && total.in_a == total.in_b; }

bool same(const Durations& a, const Durations& b) {
  return a.count() == b.count() && a.total() == b.total() && a.max() == b.max() &&
         a.quantile(0.5) == b.quantile(0.5) && a.quantile(0.99) == b.quantile(0.99);
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

std::string text_of(const Json& header, const char* key) {
  auto at = header.is_object() ? header.find(key) : header.end();
  if (at == header.end() || at->is_null()) return "";
  if (at->is_string()) return at->get<std::string>();
  if (at->is_boolean()) return at->get<bool>() ? "yes" : "no";
  std::string text;
  if (!at->is_array()) return text;
  for (const Json& element : *at) {
    std::string one = text_in(element, "name");
    if (element.is_string()) one = element.get<std::string>();
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

std::vector<Difference::Setting> settings(const Json& a, const Json& b) {
  struct Known {
    const char* key;
    std::string_view what, so;
  };
  constexpr Known KNOWN[] = {
      {"profile", "profile", "functions that only one of the profiles traces seem new or missing"},
      {"returns", "returns recorded", "one of the traces has neither durations nor results"},
      {"driver_traced", "driver traced",
       "one of the traces has no ioctls, and tracing them takes time"},
      {"driver_way", "by", "what is traced of the driver, and what that costs, is not the same"},
      {"mode", "mode", "they may be of different processes"},
      {"follow", "children traced", "one of the traces has no processes that were started"},
      {"version", "cudabpf", ""},
      {"host", "host", ""},
      {"arch", "architecture", ""},
      {"gpus", "GPUs", ""},
      {"driver", "NVIDIA driver", ""},
      {"kernel", "Linux", ""},
      {"command", "command", ""},
  };
  std::vector<Difference::Setting> unlike;
  for (const Known& known : KNOWN) {
    std::string of_a = text_of(a, known.key), of_b = text_of(b, known.key);
    if (of_a == of_b) continue;
    // If one has nothing about the driver, another setting says so.
    if (known.what == "by" && (of_a.empty() || of_b.empty())) continue;
    unlike.push_back({std::string(known.what), of_a, of_b, known.so});
  }
  return unlike;
}

std::vector<Difference::Total> totals(const Measures& a, const Measures& b) {
  std::vector<Difference::Total> all;
  auto add = [&](std::string name, Unit unit, std::uint64_t of_a, std::uint64_t of_b) {
    if (of_a || of_b) all.push_back({std::move(name), unit, of_a, of_b});
  };
  auto time_in_calls = [](const Measures& of) {
    std::uint64_t total = 0;
    for (const Calls::Figures& function : of.functions()) total += function.durations.total();
    return total;
  };
  auto operations = [](const Measures& of) {
    std::uint64_t count = 0;
    for (const Ioctls::Figures& kind : of.ioctls().operations) count += kind.count;
    return count;
  };
  auto errors_a = a.errors(), errors_b = b.errors();
  const Kernels::Totals &kernels_a = a.kernels().totals(), &kernels_b = b.kernels().totals();
  auto kernels = [](const Measures& of) { return of.kernels().figures(Kernels::By::name).size(); };
  add("duration", Unit::time, a.facts().duration(), b.facts().duration());
  add("calls", Unit::count, errors_a.calls, errors_b.calls);
  add("time in calls", Unit::time, time_in_calls(a), time_in_calls(b));
  add("calls that failed", Unit::count, errors_a.failed_calls, errors_b.failed_calls);
  add("calls that did not return", Unit::count, errors_a.calls_open, errors_b.calls_open);
  add("kernel launches", Unit::count, kernels_a.launches, kernels_b.launches);
  add("different kernels", Unit::count, kernels(a), kernels(b));
  add("graph launches", Unit::count, kernels_a.graphs, kernels_b.graphs);
  std::map<std::string, Difference::Total> more;  // totals that only some traces have
  for (const Measures* of : {&a, &b}) {
    auto to = [&](const std::string& name, Unit unit) -> std::uint64_t& {
      auto& total = more.try_emplace(name, Difference::Total{name, unit}).first->second;
      return of == &a ? total.a : total.b;
    };
    for (const auto& transfers : of->transfers()) {
      to("transfers " + transfers.name, Unit::count) = transfers.count;
      to("transfers " + transfers.name + ", bytes", Unit::bytes) = transfers.bytes;
    }
    for (const auto& peak : of->peaks())
      to("memory at its peak, " + peak.name, Unit::bytes) = peak.bytes;
  }
  for (auto& [name, total] : more) all.push_back(std::move(total));
  add("allocations not followed, being too many", Unit::count, a.memory_left_out().blocks,
      b.memory_left_out().blocks);
  add("operations on the driver", Unit::count, operations(a), operations(b));
  add("processes that ended badly", Unit::count, errors_a.bad_exits, errors_b.bad_exits);
  auto working = [](const Measures& of) {
    return of.course().process() ? of.course().process()->working_time : 0;
  };
  auto idle_share = [&](const Measures& of) {
    return working(of) ? millionths(of.course().process()->idle.total(), working(of)) : 0;
  };
  if (working(a) || working(b))
    all.push_back({"GPU probably idle, of the time at work", Unit::share, idle_share(a),
                   idle_share(b), working(a) > 0, working(b) > 0});
  return all;
}

std::vector<Difference::Total> iterations(const Iterations& a, const Iterations& b) {
  std::vector<Difference::Total> all;
  bool in_a = a.found != Iterations::Found::none, in_b = b.found != Iterations::Found::none;
  if (!in_a && !in_b) return all;
  auto add = [&](std::string name, Unit unit, auto value) {
    all.push_back({std::move(name), unit, value(a), value(b), in_a, in_b});
  };
  using Of = const Iterations&;
  add("found", Unit::count, [](Of of) { return of.count; });
  add("launches of each", Unit::count, [](Of of) { return of.launches; });
  in_a = a.times.count() > 0;
  in_b = b.times.count() > 0;
  if (!in_a && !in_b) return all;
  add("mean", Unit::time, [](Of of) { return of.times.mean(); });
  add("p50", Unit::time, [](Of of) { return of.times.quantile(0.5); });
  all.back().judgement = judge(a.times, b.times);
  add("p99", Unit::time, [](Of of) { return of.times.quantile(0.99); });
  add("in CUDA calls", Unit::share,
      [](Of of) { return millionths(of.spent.in_calls, of.times.total()); });
  add("waiting for the GPU", Unit::share,
      [](Of of) { return millionths(of.spent.waiting, of.times.total()); });
  return all;
}

std::vector<std::string> on_iterations(const Iterations& a, const Iterations& b) {
  std::vector<std::string> notes;
  for (auto [name, of] : {std::pair{"A", &a}, {"B", &b}})
    if (of->found == Iterations::Found::within_a_wait)
      notes.push_back(std::string(name) +
                      " does not wait after each: its times are those of asking for them");
  return notes;
}

// In order; a phase that only B has comes after the one that precedes it in B.
std::vector<Difference::Total> phases(const Phases& a, const Phases& b) {
  std::vector<Difference::Total> all;
  for (const Phases* of : {&a, &b}) {
    auto next = all.begin();
    for (const Phase& phase : of->phases) {
      if (!phase.seen) continue;
      auto at = std::find_if(all.begin(), all.end(),
                             [&](const auto& total) { return total.name == phase.name; });
      if (at == all.end()) at = all.insert(next, {phase.name, Unit::time, 0, 0, false, false});
      (of == &a ? at->a : at->b) = phase.time;
      (of == &a ? at->in_a : at->in_b) = true;
      next = at + 1;
    }
  }
  return all;
}

// The figures of both, joined by name. `Figures` has a name, a count and durations.
template <typename Figures>
std::vector<Difference::Timed> timed(const std::vector<Figures>& a, const std::vector<Figures>& b) {
  std::map<std::string, Difference::Timed> by_name;
  for (const Figures& of : a) {
    auto& timed = by_name[of.name];
    timed.count_a = of.count;
    timed.a = of.durations;
  }
  for (const Figures& of : b) {
    auto& timed = by_name[of.name];
    timed.count_b = of.count;
    timed.b = of.durations;
  }
  std::vector<Difference::Timed> all;
  for (auto& [name, timed] : by_name) {
    timed.name = name;
    timed.judgement = judge(timed.a, timed.b);
    all.push_back(std::move(timed));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return std::tuple(distance(other.a.total(), other.b.total()),
                      distance(other.count_a, other.count_b)) <
           std::tuple(distance(one.a.total(), one.b.total()), distance(one.count_a, one.count_b));
  });
  return all;
}

std::vector<Difference::Kernel> kernels(const Measures& a, const Measures& b, Kernels::By by) {
  using Key = std::tuple<std::string_view, std::array<std::uint32_t, 3>,
                         std::array<std::uint32_t, 3>, std::uint32_t>;
  std::map<Key, Difference::Kernel> by_launch;
  std::set<std::string_view> names;
  for (const Measures* of : {&a, &b})
    for (const Kernels::Figures& figures : of->kernels().figures(by)) {
      const Kernels::Launch& launch = figures.launch;
      auto& kernel = by_launch[{figures.full, launch.grid, launch.block, launch.shared}];
      kernel.full = figures.full;
      kernel.kernel_class = figures.kernel_class;
      kernel.launch = launch;
      (of == &a ? kernel.a : kernel.b) += figures.count;
      names.insert(figures.full);
    }
  std::vector<std::string_view> unique(names.begin(), names.end());
  std::vector<std::string> telling = telling_names(unique);
  std::vector<Difference::Kernel> all;
  for (auto& [key, kernel] : by_launch) {
    if (kernel.a == kernel.b) continue;
    auto at = std::lower_bound(unique.begin(), unique.end(), kernel.full) - unique.begin();
    kernel.name = kernel.full.empty() ? "(no name)" : telling[static_cast<std::size_t>(at)];
    all.push_back(std::move(kernel));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return distance(one.a, one.b) > distance(other.a, other.b);
  });
  return all;
}

std::vector<Difference::Failure> failures(const Measures& a, const Measures& b) {
  std::map<std::pair<std::string, std::string>, Difference::Failure> by_kind;
  for (const Measures* of : {&a, &b})
    for (const Errors::Failure& failure : of->errors().failures) {
      auto& both = by_kind[{failure.name, failure.error}];
      both.name = failure.name;
      both.error = failure.error;
      (of == &a ? both.a : both.b) = failure.count;
    }
  std::vector<Difference::Failure> all;
  for (auto& [kind, failure] : by_kind)
    if (failure.a != failure.b) all.push_back(std::move(failure));
  std::stable_sort(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return distance(one.a, one.b) > distance(other.a, other.b);
  });
  return all;
}

}  // namespace

Judgement judge(const Durations& a, const Durations& b) {
  using Verdict = Judgement::Verdict;
  if (!a.count() || !b.count()) return {};
  auto of_a = static_cast<double>(a.quantile(0.5)), of_b = static_cast<double>(b.quantile(0.5));
  Judgement judgement{Verdict::same, of_a > 0 ? 100 * (of_b - of_a) / of_a : 0};
  if (std::min(a.count(), b.count()) < Judgement::MIN_CALLS) {
    judgement.verdict = Verdict::few;
    return judgement;
  }
  double apart = std::abs(of_b - of_a);
  double by_chance = std::hypot(standard_error(a), standard_error(b));
  if (apart > Judgement::MIN_CHANGE * of_a && apart > Judgement::STANDARD_ERRORS * by_chance)
    judgement.verdict = of_b > of_a ? Verdict::slower : Verdict::faster;
  return judgement;
}

bool Difference::none() const {
  auto all_same = [](const std::vector<Total>& all) {
    return std::all_of(all.begin(), all.end(), [](const Total& of) { return same(of); });
  };
  auto all_alike = [](const std::vector<Timed>& all) {
    return std::all_of(all.begin(), all.end(), [](const Timed& of) {
      return of.count_a == of.count_b && same(of.a, of.b);
    });
  };
  return settings.empty() && kernels.empty() && failures.empty() && all_same(totals) &&
         all_same(iterations) && all_same(phases) && all_alike(functions) && all_alike(ioctls);
}

std::string_view to_string(Judgement::Verdict verdict) {
  constexpr std::string_view NAMES[] = {"not timed", "too few", "same", "slower", "faster"};
  return NAMES[static_cast<std::size_t>(verdict)];
}

void Difference::Timed::add(const Timed& other) {
  count_a += other.count_a;
  count_b += other.count_b;
  a.add(other.a);
  b.add(other.b);
  judgement = {};  // functions that have nothing in common have none
}

Difference difference(const Measures& a, const Measures& b, Kernels::By by) {
  Difference difference;
  difference.settings = settings(a.header(), b.header());
  difference.totals = totals(a, b);
  difference.iterations = iterations(a.course().iterations(), b.course().iterations());
  difference.on_iterations = on_iterations(a.course().iterations(), b.course().iterations());
  difference.phases = phases(a.course().phases(), b.course().phases());
  difference.functions = timed(a.functions(), b.functions());
  auto ioctls_a = a.ioctls(), ioctls_b = b.ioctls();
  if (!ioctls_a.groups.empty() && !ioctls_b.groups.empty())
    difference.ioctls = timed(ioctls_a.groups, ioctls_b.groups);
  difference.kernels = kernels(a, b, by);
  difference.failures = failures(a, b);
  difference.by_configuration = by == Kernels::By::configuration;
  return difference;
}

}  // namespace cudabpf::analyze
