#include "analyze/diff/difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/telling_names.hpp"

namespace cudabpf::analyze {

namespace {

bool same(const Durations& a, const Durations& b) {
  return a.count() == b.count() && a.total() == b.total() && a.max() == b.max() &&
         a.quantile(0.5) == b.quantile(0.5) && a.quantile(0.99) == b.quantile(0.99);
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

std::vector<const Settings*> settings_of(const DiffSide& side) {
  std::vector<const Settings*> all;
  for (const TraceFigures& trace : side.traces) all.push_back(&trace.settings);
  return all;
}

// The parts that have rows, in any of the traces. A part that only a later trace has comes after
// the one that precedes it there.
std::vector<MeasurePart> parts_of(const Measure& measure, const DiffSide& a, const DiffSide& b) {
  std::vector<MeasurePart> all;
  for (const DiffSide* side : {&a, &b})
    for (const TraceFigures& trace : side->traces) {
      auto next = all.begin();
      for (const TraceFigures::Figure& figure : trace.figures) {
        if (figure.asked.measure != &measure || figure.asked.part.empty()) continue;
        auto at = std::find(all.begin(), all.end(), figure.asked);
        if (at == all.end()) at = all.insert(next, figure.asked);
        next = at + 1;
      }
    }
  return all;
}

// Measures that are 0 everywhere, repeat another or estimate what was measured are left out.
std::vector<Compared> compared(Measure::Place place, const DiffSide& a, const DiffSide& b) {
  std::vector<Compared> all;
  auto add = [&](const MeasurePart& asked) {
    Compared one = compare(asked, a.traces, b.traces);
    auto makes_needless = [&](const Compared& other) {
      std::string name = other.asked.name();
      return name == asked.measure->estimates ||
             (name == asked.measure->unlike && other.a == one.a && other.b == one.b);
    };
    if (std::any_of(all.begin(), all.end(), makes_needless)) return;
    if (one.a.most > 0 || one.b.most > 0) all.push_back(std::move(one));
  };
  for (const Measure& measure : all_measures()) {
    if (measure.place != place) continue;
    if (measure.in_all) {
      Compared whole = compare({&measure, {}}, a.traces, b.traces);
      if (!whole.a.in_all() || !whole.b.in_all()) continue;
    }
    if (measure.whole) add({&measure, {}});
    if (measure.part_title.empty()) continue;
    auto parts = parts_of(measure, a, b);
    // The only part of a whole is the whole.
    if (measure.whole && parts.size() == 1) continue;
    for (const MeasurePart& asked : parts) add(asked);
  }
  return all;
}

std::vector<std::string> on_iterations(const DiffSide& a, const DiffSide& b) {
  std::vector<std::string> notes;
  for (auto [name, side] : {std::pair{"A", &a}, {"B", &b}})
    if (std::any_of(side->traces.begin(), side->traces.end(),
                    [](const TraceFigures& trace) { return trace.issued_alone; }))
      notes.push_back(std::string(name) +
                      " does not synchronise after each iteration, so its times cover submission "
                      "only");
  return notes;
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
      std::uint64_t& runs = of == &a ? kernel.a : kernel.b;
      runs = saturating_sum(runs, figures.runs());
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

// GPU time of each kernel, in all configurations; empty unless both traces have it.
std::vector<Difference::Timed> gpu_kernels(const Measures& a, const Measures& b) {
  if (!a.gpus_measured() || !b.gpus_measured()) return {};
  struct Kernel {
    std::string name;  // the whole one
    std::uint64_t count = 0;
    Durations durations;
  };
  std::set<std::string_view> names;
  auto kernels_of = [&](const Measures& of) {
    std::vector<Kernel> kernels;
    for (const Kernels::Figures& figures : of.kernels().figures(Kernels::By::name)) {
      const Durations& times = figures.gpu.times;
      if (!times.count() || figures.full.empty()) continue;
      kernels.push_back({std::string(figures.full), times.count(), times});
      names.insert(figures.full);
    }
    return kernels;
  };
  std::vector<Kernel> of_a = kernels_of(a), of_b = kernels_of(b);
  std::vector<std::string_view> unique(names.begin(), names.end());
  std::vector<std::string> telling = telling_names(unique);
  std::vector<Difference::Timed> all = timed(of_a, of_b);
  for (Difference::Timed& kernel : all) {
    auto at = std::lower_bound(unique.begin(), unique.end(), kernel.name) - unique.begin();
    kernel.full = std::exchange(kernel.name, telling[static_cast<std::size_t>(at)]);
  }
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

std::optional<std::uint64_t> begin_of_iterations(const Measures& of) {
  const Iterations& iterations = of.execution().iterations();
  if (iterations.found == Iterations::Found::none) return std::nullopt;
  return iterations.begin;
}

}  // namespace

bool Difference::none() const {
  auto all_same = [](const std::vector<Compared>& all) {
    return std::all_of(all.begin(), all.end(), [](const Compared& of) { return of.same(); });
  };
  auto all_alike = [](const std::vector<Timed>& all) {
    return std::all_of(all.begin(), all.end(), [](const Timed& of) {
      return of.count_a == of.count_b && same(of.a, of.b);
    });
  };
  return settings.empty() && kernels.empty() && failures.empty() && all_same(totals) &&
         all_same(iterations) && all_same(phases) && all_alike(functions) && all_alike(ioctls) &&
         all_alike(gpu_kernels);
}

void Difference::Timed::add(const Timed& other) {
  count_a += other.count_a;
  count_b += other.count_b;
  a.add(other.a);
  b.add(other.b);
  judgement = {};  // functions that have nothing in common have none
}

std::string name_of(char letter, const DiffSide& side, std::size_t trace) {
  return side.traces.size() == 1 ? std::string(1, letter) : fmt::format("{}{}", letter, trace + 1);
}

std::vector<Setting> settings_unlike(const DiffSide& a, const DiffSide& b) {
  return settings_unlike(settings_of(a), settings_of(b));
}

std::size_t middle_trace(const std::vector<TraceFigures>& traces) {
  std::vector<std::pair<std::uint64_t, std::size_t>> by_duration;
  for (std::size_t i = 0; i < traces.size(); i++)
    by_duration.emplace_back(traces[i].facts.recorded_time(), i);
  auto middle = by_duration.begin() + static_cast<std::ptrdiff_t>((traces.size() - 1) / 2);
  std::nth_element(by_duration.begin(), middle, by_duration.end());
  return middle->second;
}

Difference difference(const DiffSide& side_a, const DiffSide& side_b, Kernels::By by) {
  using Place = Measure::Place;
  const Measures &a = *side_a.shown, &b = *side_b.shown;
  Difference difference;
  difference.settings = settings_unlike(side_a, side_b);
  difference.totals = compared(Place::totals, side_a, side_b);
  difference.iterations = compared(Place::iterations, side_a, side_b);
  difference.on_iterations = on_iterations(side_a, side_b);
  difference.phases = compared(Place::phases, side_a, side_b);
  difference.functions = timed(a.functions(), b.functions());
  auto ioctls_a = a.ioctls(), ioctls_b = b.ioctls();
  if (!ioctls_a.groups.empty() && !ioctls_b.groups.empty())
    difference.ioctls = timed(ioctls_a.groups, ioctls_b.groups);
  difference.kernels = kernels(a, b, by);
  difference.gpu_kernels = gpu_kernels(a, b);
  difference.failures = failures(a, b);
  difference.begins_a = begin_of_iterations(a);
  difference.begins_b = begin_of_iterations(b);
  difference.by_configuration = by == Kernels::By::configuration;
  if (side_a.traces.size() + side_b.traces.size() > 2)
    difference.shown =
        name_of('A', side_a, side_a.shown_at) + " and " + name_of('B', side_b, side_b.shown_at);
  return difference;
}

}  // namespace cudabpf::analyze
