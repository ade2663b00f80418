#include "replay/isolated_page.hpp"

#include <fmt/format.h>

#include "replay/launches.hpp"
#include "replay/listing.hpp"
#include "replay/microseconds.hpp"
#include "replay/replay_page.hpp"
#include "state/gpu_figures.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json;

namespace {

bool is_timed(const IsolatedLaunch& launch) {
  return launch.time && !launch.time->warm_ns.empty() && !launch.time->cold_ns.empty();
}

bool does_less_again(const IsolatedLaunch& launch) {
  return is_timed(launch) && launch.time->does_less_again;
}

std::string range_text(const std::vector<std::uint64_t>& ns) {
  auto [least, most] = std::minmax_element(ns.begin(), ns.end());
  return fmt::format("{:.2f}-{:.2f}", us(*least), us(*most));
}

std::string clock_text(const IsolatedLaunch& launch) {
  if (!launch.time || !launch.time->clocks) return {};
  return fmt::format("{} MHz{}", launch.time->clocks->sm_mhz,
                     is_throttled(launch.time->clocks->throttle) ? ", throttled" : "");
}

}  // namespace

Json isolated_json(const IsolatedReplay& replay, const Manifest& manifest, const Tape& tape) {
  Json json = full_json(replay.tape, manifest, tape);
  json.erase("timing");
  auto distinct = distinct_launches(tape, manifest);
  json["gpu"] = replay.tape.gpu.name;
  Json& list = json["launches"] = Json::array();
  for (const IsolatedLaunch& launch : replay.launches) {
    Json one = launch_json(distinct[launch.launch], manifest);
    if (is_timed(launch)) {
      if (does_less_again(launch)) {
        one["does_less_again"] = true;
      } else {
        one["launches_in_a_run"] = launch.time->launches;
        one["warm_us"] = samples_json(launch.time->warm_ns);
        one["cold_us"] = samples_json(launch.time->cold_ns);
      }
      if (!launch.time->in_turn_ns.empty())
        one["in_turn_us"] = samples_json(launch.time->in_turn_ns);
      if (launch.time->clocks)
        one["clocks"] = {{"sm_mhz", launch.time->clocks->sm_mhz},
                         {"throttled", is_throttled(launch.time->clocks->throttle)}};
    }
    list.push_back(std::move(one));
  }
  return json;
}

void add_isolated(Page& page, const IsolatedReplay& replay, const Manifest& manifest,
                  const Tape& tape) {
  add_outcome(page, replay.tape, manifest);
  auto distinct = distinct_launches(tape, manifest);
  Table table("Launches by themselves, in us", {{"in turn"},
                                                {"warm"},
                                                {"range", 2, true},
                                                {"cold"},
                                                {"cold range", 3, true},
                                                {"SM clock", 4},
                                                {"count"},
                                                {"grid", 1, true},
                                                {"block", 1, true}});
  for (const IsolatedLaunch& launch : replay.launches) {
    const DistinctLaunch& of = distinct[launch.launch];
    bool timed = is_timed(launch), often = timed && !does_less_again(launch);
    table.row(
        kernel_name(of.kernel, manifest),
        {timed && !launch.time->in_turn_ns.empty() ? median_text(launch.time->in_turn_ns) : "",
         often ? median_text(launch.time->warm_ns) : "",
         often ? range_text(launch.time->warm_ns) : "",
         often   ? median_text(launch.time->cold_ns)
         : timed ? ""
                 : "not run",
         often ? range_text(launch.time->cold_ns) : "", clock_text(launch), with_commas(of.count),
         dim_text(of.grid), dim_text(of.block)});
  }
  table.add_to(page);
  auto less = std::count_if(replay.launches.begin(), replay.launches.end(), does_less_again);
  if (less)
    page.paragraph(fmt::format("{} when run over and over: only the time in turn is shown.",
                               count_of(static_cast<std::uint64_t>(less), "launch does less",
                                        "launches do less")),
                   2);
}

}  // namespace cudabpf::replay
