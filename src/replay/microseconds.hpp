// Samples of times, as answers show them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/fields.hpp"

namespace cudabpf::replay {

constexpr double us(std::uint64_t ns) {
  constexpr double NS_IN_US = 1000;
  return static_cast<double>(ns) / NS_IN_US;
}

// There is at least one.
inline double median_us(std::vector<std::uint64_t> ns) {
  std::sort(ns.begin(), ns.end());
  std::size_t middle = ns.size() / 2;
  return ns.size() % 2 ? us(ns[middle]) : (us(ns[middle - 1]) + us(ns[middle])) / 2;
}

inline std::string median_text(const std::vector<std::uint64_t>& ns) {
  return fmt::format("{:.2f}", median_us(ns));
}

inline bundle::Json samples_json(const std::vector<std::uint64_t>& ns) {
  bundle::Json runs = bundle::Json::array();
  for (std::uint64_t one : ns) runs.push_back(us(one));
  return {{"median", median_us(ns)},
          {"min", us(*std::min_element(ns.begin(), ns.end()))},
          {"max", us(*std::max_element(ns.begin(), ns.end()))},
          {"runs", std::move(runs)}};
}

}  // namespace cudabpf::replay
