#include "replay/energy/energy_page.hpp"

#include <fmt/format.h>

#include "replay/listing.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json;

namespace {

constexpr double MILLI = 1e3, MICRO = 1e6;

Json or_null(const std::optional<double>& number, double scale = 1) {
  return number ? Json(*number * scale) : Json(nullptr);
}

Json iteration_json(const std::optional<MeasuredIteration>& measured) {
  if (!measured) return nullptr;
  return {{"iterations", measured->iterations},
          {"window_s", measured->window_s},
          {"each_us", measured->seconds * MICRO},
          {"energy_j", measured->joules},
          {"counter_error_j", measured->error_j},
          {"mean_power_w", measured->watts()},
          {"predicted_from_kernels_j", or_null(measured->predicted_j)},
          {"error_percent", or_null(measured->error_percent)}};
}

void add_iteration(Page& page, std::string_view name,
                   const std::optional<MeasuredIteration>& measured, const std::string& why_not) {
  if (!measured) {
    page.term(name, why_not.empty() ? "not measured" : "not measured: " + why_not);
    return;
  }
  std::string text =
      fmt::format("{:.3f} J ± {:.1f} %, {:.1f} W: {:.0f} iterations of {:.3f} ms within {:.1f} s",
                  measured->joules, 100 * measured->error_j / measured->joules, measured->watts(),
                  measured->iterations, measured->seconds * MILLI, measured->window_s);
  if (measured->predicted_j)
    text += fmt::format("; predicted from its kernels: {:.3f} J, {:+.1f} %", *measured->predicted_j,
                        *measured->error_percent);
  page.term(name, text);
}

}  // namespace

Json energy_json(const PredictedEnergy& energy, const Manifest& manifest, const Tape& tape) {
  auto distinct = distinct_launches(tape, manifest);
  Json json = {{"idle_power_w", or_null(energy.idle_w)},
               {"idle_window_s", energy.idle_window_s},
               {"above_idle_j", energy.above_idle_j},
               {"launches_measured", energy.measured},
               {"launches_not_measured", energy.not_measured},
               {"copies_and_fills_not_measured", energy.copies},
               {"iteration", iteration_json(energy.tape)},
               {"program", iteration_json(energy.program)},
               {"kernels", Json::array()}};
  if (!energy.no_energy.empty()) json["why_not"] = energy.no_energy;
  if (!energy.no_program.empty()) json["program_why_not"] = energy.no_program;
  for (const LaunchEnergy& one : energy.launches) {
    Json launch = launch_json(distinct[one.launch], manifest);
    launch["launches"] = one.launches;
    launch["window_s"] = one.window_s;
    launch["energy_uj"] = one.joules * MICRO;
    launch["counter_error_uj"] = one.error_j * MICRO;
    launch["warm_above_idle_uj"] = or_null(one.warm_j, MICRO);
    launch["cold_above_idle_uj"] = or_null(one.cold_j, MICRO);
    launch["in_turn_above_idle_uj"] = or_null(one.in_turn_j, MICRO);
    launch["mean_power_w"] = one.watts;
    json["kernels"].push_back(std::move(launch));
  }
  return json;
}

void add_energy(Page& page, const PredictedEnergy& energy, const Manifest& manifest,
                const Tape& tape) {
  add_section(page, "Energy, by the GPU's counter");
  if (energy.idle_w)
    page.term("idle", fmt::format("{:.1f} W within {:.1f} s, between work", *energy.idle_w,
                                  energy.idle_window_s));
  add_iteration(page, "the tape", energy.tape, energy.no_energy);
  if (energy.program || !energy.no_program.empty())
    add_iteration(page, "the program", energy.program, energy.no_program);
  if (energy.not_measured || energy.copies)
    page.term("left out", fmt::format("{} that were not measured, {}",
                                      count_of(energy.not_measured, "launch", "launches"),
                                      count_of(energy.copies, "copy or fill", "copies and fills")));
  auto distinct = distinct_launches(tape, manifest);
  auto above = [](const std::optional<double>& joules) {
    return joules ? fmt::format("{:.1f}", *joules * MICRO) : "";
  };
  Table table("Launches by themselves, in uJ above idle", {{"in turn"},
                                                           {"warm"},
                                                           {"cold"},
                                                           {"with idle", 2},
                                                           {"error", 3},
                                                           {"power", 1},
                                                           {"count"},
                                                           {"grid", 4, true},
                                                           {"block", 4, true}});
  for (const LaunchEnergy& one : energy.launches) {
    const DistinctLaunch& of = distinct[one.launch];
    table.row(kernel_name(of.kernel, manifest),
              {above(one.in_turn_j), above(one.warm_j), above(one.cold_j), above(one.joules),
               fmt::format("± {:.1f}", one.error_j * MICRO), fmt::format("{:.0f} W", one.watts),
               with_commas(one.count), dim_text(of.grid), dim_text(of.block)});
  }
  if (!table.empty()) table.add_to(page);
}

}  // namespace cudabpf::replay
