// A trace that is to be judged, and what the rules for findings ask of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/iterations/execution.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/summary/finding.hpp"
#include "analyze/summary/measured_execution.hpp"
#include "analyze/summary/stretch.hpp"
#include "analyze/summary/totals.hpp"
#include "util/text/moments.hpp"

namespace cudabpf::analyze {

// All of them have seen the whole trace.
struct Seen {
  const Names& names;
  const Totals& totals;
  const Execution& execution;
  const Memory& memory;
  const TraceFacts& facts;
  Part part;
  Moments moments = {};  // how texts show times
};

struct LostEvents {
  std::uint64_t lost = 0, all = 0;  // all: with those that are in the trace
  bool uncounted = false;           // and an unknown number more
  std::uint64_t processes = 0;      // that were not recorded
};

struct Judged : Seen {
  explicit Judged(const Seen& seen)
      : Seen(seen), stretch(stretch_of(execution)), measured(measured_of(execution, stretch)) {}

  static constexpr std::size_t GAPS = 3;  // how many of the longest idle times count

  Stretch stretch;
  MeasuredExecution measured;

  bool has_iterations() const { return execution.iterations().found != Iterations::Found::none; }
  bool leaves_out_needed() const;  // launches or waits, which were not wanted
  bool can_be_judged() const;      // they are there, with their durations
  LostEvents lost_events() const;
  bool lost_too_many() const;
  bool is_cut_before_work() const;
  bool is_worth_judging() const;  // there is enough work

  // What would help where the GPU waits for the host.
  std::string host_advice() const;
  // In the time of the stretch.
  Finding finding(std::string_view id, std::string_view title,
                  Finding::Sure sure = Finding::Sure::known) const;
  // Those of the slowest calls that lie in the finding's time.
  void add_slowest(Finding& finding) const;
  // The calls before and after each gap in the finding's time.
  static void add_gaps(Finding& finding, std::span<const Gap> gaps);
};

}  // namespace cudabpf::analyze
