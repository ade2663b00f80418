#include "analyze/diff/noise.hpp"

#include <algorithm>
#include <cmath>

namespace cudabpf::analyze {

namespace {

using Verdict = Judgement::Verdict;

constexpr double RARE = 1.0 / 20;
constexpr double ROUNDING = 1e-9;  // of sums of chances

// The spread is that between the quartiles, so that a long tail, which CUDA's durations have, does
// not hide a change in what is usual.
Median median(std::uint64_t count, std::uint64_t value, std::uint64_t lower, std::uint64_t upper) {
  double spread = static_cast<double>(upper) - static_cast<double>(lower);
  return {count, static_cast<double>(value), 0.93 * spread / std::sqrt(static_cast<double>(count))};
}

bool by_chance(const Median& a, const Median& b) {
  return std::abs(b.value - a.value) <=
         Judgement::STANDARD_ERRORS * std::hypot(a.standard_error, b.standard_error);
}

// Twice the rank of each value among all, from 2 on; equal ones share the mean of their ranks.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& all) {
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::size_t> ranks;
  for (double value : all) {
    auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
    ranks.push_back(static_cast<std::size_t>((first - sorted.begin()) + (last - sorted.begin())) +
                    1);
  }
  return ranks;
}

// The probability that `drawn` of these ranks, drawn by chance, add up to at least `sum`.
double chance_of(const std::vector<std::size_t>& ranks, std::size_t drawn, std::size_t sum) {
  std::size_t all = 0;
  for (std::size_t rank : ranks) all += rank;
  // By the number drawn and its sum: the share of all ways to draw that many.
  std::vector<std::vector<double>> chance(drawn + 1, std::vector<double>(all + 1));
  chance[0][0] = 1;
  for (std::size_t i = 0; i < ranks.size(); i++) {
    for (std::size_t count = std::min(drawn, i + 1); count > 0; count--) {
      // The share of draws of `count` from i + 1 values that have the last value.
      double with_last = static_cast<double>(count) / static_cast<double>(i + 1);
      std::vector<double>& of_count = chance[count];
      for (double& one : of_count) one *= 1 - with_last;
      auto to = of_count.begin() + static_cast<std::ptrdiff_t>(ranks[i]);
      for (auto from = chance[count - 1].begin(); to != of_count.end(); ++to, ++from)
        *to += *from * with_last;
    }
  }
  double chance_of_sum = 0;
  for (std::size_t total = sum; total <= all; total++) chance_of_sum += chance[drawn][total];
  return chance_of_sum;
}

// The probability that chance alone orders the traces of two sides best: 1 in the number of ways.
double rarest(std::size_t a, std::size_t b) {
  double chance = 1;
  for (std::size_t i = 1; i <= a; i++)
    chance *= static_cast<double>(i) / static_cast<double>(b + i);
  return chance;
}

bool is_above(const std::vector<double>& high, const std::vector<double>& low) {
  if (rarest(high.size(), low.size()) > RARE + ROUNDING) {
    auto [least, most] = std::minmax_element(low.begin(), low.end());
    auto [least_high, most_high] = std::minmax_element(high.begin(), high.end());
    return *least_high - *most > std::max(*most - *least, *most_high - *least_high);
  }
  std::vector<double> all = high;
  all.insert(all.end(), low.begin(), low.end());
  std::vector<std::size_t> ranks = doubled_ranks(all);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < high.size(); i++) sum += ranks[i];
  return chance_of(ranks, high.size(), sum) <= RARE + ROUNDING;
}

}  // namespace

Median median_of(const Durations& times) {
  if (!times.count()) return {};
  return median(times.count(), times.quantile(0.5), times.quantile(0.25), times.quantile(0.75));
}

Median median_of(std::span<const std::uint64_t> sorted) {
  if (sorted.empty()) return {};
  return median(sorted.size(), quantile_of(sorted, 0.5), quantile_of(sorted, 0.25),
                quantile_of(sorted, 0.75));
}

Judgement judge(const Median& a, const Median& b) {
  if (!a.count || !b.count) return {};
  Judgement judgement{Verdict::unclear, a.value > 0 ? 100 * (b.value - a.value) / a.value : 0};
  if (a.value == b.value)
    judgement.verdict = Verdict::same;
  else if (std::min(a.count, b.count) < Judgement::MIN_CALLS)
    judgement.verdict = Verdict::few;
  else if (std::abs(b.value - a.value) > Judgement::MIN_CHANGE * a.value && !by_chance(a, b))
    judgement.verdict = b.value > a.value ? Verdict::slower : Verdict::faster;
  return judgement;
}

Judgement judge(const Durations& a, const Durations& b) {
  return judge(median_of(a), median_of(b));
}

std::string_view to_string(Judgement::Verdict verdict) {
  constexpr std::string_view NAMES[] = {"not timed",   "too few", "same",
                                        "not certain", "slower",  "faster"};
  return NAMES[static_cast<std::size_t>(verdict)];
}

std::string_view to_string(Noise noise) {
  constexpr std::string_view NAMES[] = {"unknown", "within", "beyond"};
  return NAMES[static_cast<std::size_t>(noise)];
}

Noise noise_of(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty() || a.size() + b.size() == 2) return Noise::unknown;
  double of_a = middle_of(a), of_b = middle_of(b);
  if (of_a == of_b) return Noise::within;
  return (of_b > of_a ? is_above(b, a) : is_above(a, b)) ? Noise::beyond : Noise::within;
}

Noise noise_of(const Median& a, const Median& b) {
  if (std::min(a.count, b.count) < Judgement::MIN_CALLS) return Noise::unknown;
  return by_chance(a, b) ? Noise::within : Noise::beyond;
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace cudabpf::analyze
