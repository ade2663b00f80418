#include "analyze/iterations/iterations.hpp"

#include <algorithm>
#include <span>
#include <tuple>

namespace cudabpf::analyze {

namespace {

constexpr std::uint64_t AT_LEAST = 3;  // repetitions that make a pattern

// One iteration, from its start to the start of what comes after it.
struct Lap {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t done = 0;  // when its work was done, whatever came before the next
  std::uint64_t launches = 0, first_call = 0;
  Spent before, after;
  bool to_next = false;  // the next iteration follows at once

  std::uint64_t time() const { return end - begin; }
};

std::uint64_t median(std::vector<std::uint64_t> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool same_class(const Segment& a, const Segment& b) {
  std::uint64_t fewer = std::min(a.launches, b.launches), more = std::max(a.launches, b.launches);
  return a.first == b.first && a.last == b.last &&
         more - fewer <= std::max<std::uint64_t>(2, fewer / 20);
}

// The segments of the class that launches most, in time order.
std::vector<std::size_t> heaviest_class(const std::vector<Segment>& segments) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < segments.size(); i++) order.push_back(i);
  auto key = [&](std::size_t i) {
    const Segment& segment = segments[i];
    return std::tuple(segment.first.id, segment.last.id, segment.launches, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::span<std::size_t> best;
  std::uint64_t most = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::uint64_t launched = 0;
    do launched += segments[order[end++]].launches;
    while (end < order.size() && same_class(segments[order[begin]], segments[order[end]]));
    if (end - begin < AT_LEAST || launched <= most) continue;
    most = launched;
    best = std::span(order).subspan(begin, end - begin);
  }
  std::vector<std::size_t> found(best.begin(), best.end());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Lap> laps_between_waits(const ThreadWork& thread) {
  const auto& segments = thread.segments;
  std::vector<std::size_t> members = heaviest_class(segments);
  std::vector<Lap> laps;
  for (std::size_t i = 0; i < members.size(); i++) {
    std::size_t here = members[i];
    std::size_t next = i + 1 < members.size() ? members[i + 1] : here + 1;
    Lap lap;
    lap.begin = segments[here].begin.ts;
    lap.before = segments[here].begin.spent;
    lap.launches = segments[here].launches;
    lap.first_call = segments[here].first_call;
    lap.to_next = i + 1 < members.size();
    for (std::size_t between = here + 1; between < next; between++) {
      if (segments[between].launches >
          segments[here].launches) {  // other work, such as another prompt's
        lap.to_next = false;
        break;
      }
      lap.launches += segments[between].launches;
    }
    lap.end = lap.to_next ? segments[next].begin.ts : segments[here].end.ts;
    lap.done = segments[here].end.ts;
    if (!lap.to_next) lap.launches = segments[here].launches;
    lap.after = lap.to_next ? segments[next].begin.spent : segments[here].end.spent;
    laps.push_back(lap);
  }
  return laps;
}

// Whether the `size` kernels before `a` and those before `b` differ in at most one of twenty.
bool alike(std::span<const Launch> launches, std::size_t a, std::size_t b, std::size_t size) {
  std::size_t different = 0;
  for (std::size_t i = 1; i <= size; i++)
    if (launches[a - i].kernel != launches[b - i].kernel && ++different > size / 20) return false;
  return true;
}

// Whether all but one of ten are launches of one graph, which is a sequence of kernels by itself. A
// thread of its own may do the waiting.
bool is_one_graph(std::span<const Launch> launches) {
  std::uint64_t graph = launches.back().graph;
  auto same = [graph](const Launch& launch) { return launch.graph == graph; };
  return graph && std::all_of(launches.end() - AT_LEAST, launches.end(), same) &&
         std::count_if(launches.begin(), launches.end(), same) * 10 >= std::ssize(launches) * 9;
}

// The length of the sequence that the end of the launches repeats; 0: none.
std::size_t period_at_end(std::span<const Launch> launches) {
  if (launches.size() < AT_LEAST) return 0;
  if (is_one_graph(launches)) return 1;
  std::size_t size = launches.size();
  Name last = launches.back().kernel;
  bool other = false;  // one kernel over and over is no pattern
  for (std::size_t period = 1; period * AT_LEAST <= size; period++) {
    other |= launches[size - period].kernel != last;
    if (!other || launches[size - 1 - period].kernel != last) continue;
    bool repeats = true;
    for (std::size_t lap = 1; lap < AT_LEAST && repeats; lap++)
      repeats = alike(launches, size, size - lap * period, period);
    if (repeats) return period;
  }
  return 0;
}

// Where the lap before the one that ends at `end` ends; 0: there is none. Laps differ, as token
// sequences grow: only the last eighth must be the same, and a lap may be half or twice as long.
std::size_t end_before(std::span<const Launch> launches, std::size_t end, std::size_t period) {
  std::size_t tail = std::min(period, std::max<std::size_t>(2, period / 8));
  for (std::size_t length = period / 2; length <= 2 * period && length + tail <= end; length++)
    if (length && alike(launches, end, end - length, tail)) return end - length;
  return 0;
}

std::uint64_t usual_time(const std::vector<Lap>& laps) {
  std::vector<std::uint64_t> times;
  for (const Lap& lap : laps)
    if (lap.to_next || laps.size() == 1) times.push_back(lap.time());
  return times.empty() ? laps.back().time() : median(std::move(times));
}

std::vector<Lap> laps_within(const ThreadWork& thread) {
  std::span<const Launch> launches = thread.longest;
  std::size_t period = 0;
  // One more kernel may follow the last lap, such as a sum over all.
  for (std::size_t after = 0; !period && after <= 1 && after < launches.size(); after++) {
    launches = std::span(thread.longest).first(thread.longest.size() - after);
    period = period_at_end(launches);
  }
  std::vector<Lap> laps;
  if (!period) return laps;
  std::size_t length = period;
  for (std::size_t end = launches.size(); end >= length;) {
    std::size_t begin = end_before(launches, end, period);
    bool is_first = !begin;
    length = is_first ? length : end - begin;
    begin = end - length;
    Lap lap;
    lap.begin = launches[begin].at.ts;
    lap.before = launches[begin].at.spent;
    lap.first_call = launches[begin].call;
    lap.to_next = end < launches.size();
    // The last launch of all is part of the last lap.
    const Moment& over = end < thread.longest.size() ? thread.longest[end].at : thread.longest_end;
    lap.end = lap.done = over.ts;
    lap.after = over.spent;
    lap.launches = length;
    laps.push_back(lap);
    if (is_first) break;
    end = begin;
  }
  std::reverse(laps.begin(), laps.end());
  // What comes between the last launch and another one, or the end, may be other work.
  Lap& last = laps.back();
  bool one_more = launches.size() < thread.longest.size();
  const Moment& issued = one_more ? thread.longest_end_before : thread.longest_end;
  if (laps.size() > 1 && last.time() > 2 * usual_time(laps)) {
    last.end = last.done = issued.ts;
    last.after = issued.spent;
  }
  return laps;
}

std::uint64_t launches_of(const std::vector<Lap>& laps) {
  std::uint64_t launches = 0;
  for (const Lap& lap : laps) launches += lap.launches;
  return launches;
}

// At most half of the laps.
std::size_t warm_up_of(const std::vector<Lap>& laps, std::uint64_t usual) {
  std::size_t count = 0;
  while (count < laps.size() / 2) {
    const Lap& lap = laps[count];
    bool loads = (lap.after - lap.before).module > usual / 20;
    if (!loads && lap.time() <= usual + usual / 2) break;
    count++;
  }
  return count;
}

}  // namespace

Iterations find_iterations(const ThreadWork& thread, const Part& part) {
  Iterations found;
  std::vector<Lap> laps = laps_between_waits(thread);
  std::vector<Lap> within = laps_within(thread);
  bool is_within = launches_of(within) > launches_of(laps);
  if (is_within) laps = std::move(within);
  if (laps.empty()) return found;
  found.found = is_within ? Iterations::Found::within_a_wait : Iterations::Found::between_waits;

  std::uint64_t usual = usual_time(laps);
  std::vector<std::uint64_t> launches, kernels;
  const Lap* typical = nullptr;
  auto distance = [&](const Lap& lap) {
    return lap.time() > usual ? lap.time() - usual : usual - lap.time();
  };
  found.count = laps.size();
  found.warm_up = warm_up_of(laps, usual);
  for (std::size_t i = 0; i < laps.size(); i++) {
    const Lap& lap = laps[i];
    bool pause = lap.to_next && lap.time() > 10 * usual;
    Iteration& one = found.each.emplace_back(
        Iteration{lap.begin, std::max(lap.begin, pause ? lap.done : lap.end), lap.launches});
    if (one.begin < part.from || one.end > part.to) continue;
    launches.push_back(lap.launches);
    kernels.push_back((lap.after - lap.before).kernels);
    found.warm_up_in_part += i < found.warm_up;
    if (i < found.warm_up || !lap.to_next) continue;
    if (pause) {
      found.pauses++;
      continue;
    }
    one.timed = true;
    found.times.add(lap.time());
    found.sorted_times.push_back(lap.time());
    found.spent += lap.after - lap.before;
    if (!typical || distance(lap) < distance(*typical)) typical = &lap;
  }
  std::sort(found.sorted_times.begin(), found.sorted_times.end());
  found.in_part = launches.size();
  if (found.in_part) {
    found.fewest = *std::min_element(launches.begin(), launches.end());
    found.most = *std::max_element(launches.begin(), launches.end());
    found.launches = median(std::move(launches));
    found.kernels = median(std::move(kernels));
  }
  if (!typical) typical = &laps.back();
  found.typical = {typical->begin, typical->end, typical->first_call};
  const Lap& warm = laps[found.warm_up];
  found.begin = laps.front().begin;
  found.at_begin = laps.front().before;
  found.warm = warm.begin;
  found.at_warm = warm.before;
  found.end = laps.back().end;
  found.at_end = laps.back().after;
  return found;
}

}  // namespace cudabpf::analyze
