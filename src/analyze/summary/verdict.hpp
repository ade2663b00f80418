// What a trace shows that a person could act on, the most important first: what is missing from it,
// what failed, what bounds the program, what it did before its work began.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/course/course.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/summary/totals.hpp"

namespace cudabpf::analyze {

struct Finding {
  // Calls are known. What they say of the GPU, which a trace does not show, is likely.
  enum class Sure : std::uint8_t { known, likely };

  std::string_view id;     // for programs: "host_bound"
  std::string_view title;  // for people: "Host-bound"
  Sure sure = Sure::known;
  std::string text;
  std::uint64_t begin = 0, end = 0;  // ns: where the trace shows it
  std::vector<std::uint64_t> calls;  // some that show it best: their ids
  std::vector<std::pair<std::string_view, double>> figures;
};

// All of them must have seen the whole trace.
struct Seen {
  const Names& names;
  const Totals& totals;
  const Course& course;
  const Memory& memory;
  const TraceFacts& facts;
};

std::vector<Finding> find_verdict(const Seen& seen);

Json verdict_json(const std::vector<Finding>& findings);
// The first few.
void add_verdict(Page& page, const std::vector<Finding>& findings);

}  // namespace cudabpf::analyze
