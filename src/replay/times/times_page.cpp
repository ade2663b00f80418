#include "replay/times/times_page.hpp"

#include <fmt/format.h>

#include <cmath>

#include "replay/listing.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json;

namespace {

// As exact as the samples are: in ns, or thousandths of a percent.
double rounded(double number) {
  constexpr double THOUSAND = 1000;
  return std::round(number * THOUSAND) / THOUSAND;
}

Json rounded_or_null(const std::optional<double>& number) {
  return number ? Json(rounded(*number)) : Json(nullptr);
}

std::string_view name_of(Place place) { return PLACES[static_cast<std::size_t>(place)]; }

Json tier_json(const ComparedTier& tier) {
  return {{"tier", tier.tier},
          {"method", tier.method},
          {"unique_kernels", tier.unique_kernels},
          {"operations", tier.operations},
          {"total_us", rounded(tier.total_us)},
          {"actual_us", rounded(tier.actual_us)},
          {"error_percent", rounded_or_null(tier.error_percent)}};
}

Json launches_json(const TimesCompared& times, const Manifest& manifest, const Tape& tape) {
  auto distinct = distinct_launches(tape, manifest);
  Json list = Json::array();
  for (const ComparedLaunch& one : times.launches) {
    Json json = launch_json(distinct[one.launch], manifest);
    json["measured"] = one.measured;
    json["actual_total_us"] = rounded(one.total_us);
    json["actual_mean_us"] = one.measured ? Json(rounded(one.mean_us)) : Json(nullptr);
    json["actual_median_us"] = one.measured ? Json(rounded(one.median_us)) : Json(nullptr);
    json["warm_us"] = rounded_or_null(one.warm_us);
    json["cold_us"] = rounded_or_null(one.cold_us);
    json["in_turn_us"] = rounded_or_null(one.in_turn_us);
    json["warm_has_launch_gap"] = one.has_delay;
    json["place"] = name_of(one.place);
    json["launches_within"] = one.within;
    json["beside_others"] = one.beside_others;
    json["why"] = one.why();
    list.push_back(std::move(json));
  }
  return list;
}

std::string error_text(double predicted, double actual) {
  return fmt::format("{:+.1f} %", error_percent(predicted, actual));
}

void add_whole(Page& page, const TimesCompared& times) {
  add_section(page, "Time, in the program and replayed");
  page.term("actual",
            fmt::format("{:.1f} us in which the GPU was busy, with {}; {:.1f} us from "
                        "the first to the end of the last; the program's iteration took "
                        "{:.1f} us while it was captured",
                        times.busy_us, count_of(times.operations, "operation", "operations"),
                        times.span_us, times.wall_us));
  if (times.full_us)
    page.term("whole tape", fmt::format("{:.1f} us (median of {}), with the gaps in it",
                                        *times.full_us, count_of(times.full_runs, "run", "runs")));
  else
    page.term("whole tape", "not timed");
  page.term("from kernels",
            fmt::format(
                "{:.1f} us: {}; with a warm L2 cache {:.1f} us: {}; with a cold one {:.1f} us: {}",
                times.predicted_us, error_text(times.predicted_us, times.busy_us),
                times.predicted_warm_us, error_text(times.predicted_warm_us, times.busy_us),
                times.predicted_cold_us, error_text(times.predicted_cold_us, times.busy_us)));
}

void add_tiers(Page& page, const TimesCompared& times) {
  Table table("Predicted, in us", {{"predicted"},
                                   {"actual"},
                                   {"error"},
                                   {"kernels", 2},
                                   {"operations", 1},
                                   {"method", 3, true}});
  for (const ComparedTier& tier : times.tiers)
    if (tier.operations)
      table.row(std::string(tier.tier),
                {fmt::format("{:.1f}", tier.total_us), fmt::format("{:.1f}", tier.actual_us),
                 tier.error_percent ? fmt::format("{:+.1f} %", *tier.error_percent) : "",
                 tier.unique_kernels ? with_commas(tier.unique_kernels) : "",
                 with_commas(tier.operations), std::string(tier.method)});
  table.add_to(page);
}

void add_launches(Page& page, const TimesCompared& times, const Manifest& manifest,
                  const Tape& tape) {
  auto distinct = distinct_launches(tape, manifest);
  auto number = [](std::optional<double> us) { return us ? fmt::format("{:.2f}", *us) : ""; };
  Table table("Launches, in us", {{"count"},
                                  {"actual"},
                                  {"in turn"},
                                  {"warm"},
                                  {"cold"},
                                  {"actual is", 0, true},
                                  {"grid", 1, true},
                                  {"block", 2, true}});
  for (const ComparedLaunch& one : times.launches) {
    const DistinctLaunch& of = distinct[one.launch];
    table.row(kernel_name(of.kernel, manifest),
              {with_commas(one.count), one.measured ? number(one.median_us) : "",
               number(one.in_turn_us), number(one.warm_us), number(one.cold_us),
               std::string(name_of(one.place)), dim_text(of.grid), dim_text(of.block)});
  }
  table.add_to(page);
  page.blank();
  page.paragraph(
      fmt::format("{} of {} that can be judged ({:.1f} %) took as long as warm to cold, "
                  "give or take {} % or {} us.",
                  with_commas(times.within), count_of(times.judged, "launch", "launches"),
                  times.share_within(), TOLERANCE_PERCENT, TOLERANCE_US),
      2);
}

}  // namespace

Json times_json(const TimesCompared& times, const Manifest& manifest, const Tape& tape) {
  Json json = {
      {"actual",
       {{"gpu_busy_us", rounded(times.busy_us)},
        {"gpu_sum_us", rounded(times.sum_us)},
        {"gpu_span_us", rounded(times.span_us)},
        {"wall_us", rounded(times.wall_us)},
        {"operations", times.operations}}},
      {"full_model_inference_us", rounded_or_null(times.full_us)},
      {"full_model_error_percent", nullptr},
      {"predicted_from_kernels_us", rounded(times.predicted_us)},
      {"error_percent", rounded(error_percent(times.predicted_us, times.busy_us))},
      {"prediction", "in_turn"},
      {"predicted_warm_us", rounded(times.predicted_warm_us)},
      {"warm_error_percent", rounded(error_percent(times.predicted_warm_us, times.busy_us))},
      {"predicted_cold_us", rounded(times.predicted_cold_us)},
      {"cold_error_percent", rounded(error_percent(times.predicted_cold_us, times.busy_us))},
      {"from_trace_us", rounded(times.copies_us + times.not_timed_us)},
      {"tier_breakdown", Json::array()}};
  if (times.full_us)
    json["full_model_error_percent"] = rounded(error_percent(*times.full_us, times.busy_us));
  for (const ComparedTier& tier : times.tiers) json["tier_breakdown"].push_back(tier_json(tier));
  json["tolerance"] = {{"percent", TOLERANCE_PERCENT}, {"us", TOLERANCE_US}};
  json["launches_judged"] = times.judged;
  json["launches_within"] = times.within;
  json["share_within_percent"] = times.judged ? Json(rounded(times.share_within())) : Json(nullptr);
  json["launches"] = launches_json(times, manifest, tape);
  json["why"] = times.reasons();
  return json;
}

void add_times(Page& page, const TimesCompared& times, const Manifest& manifest, const Tape& tape) {
  add_whole(page, times);
  add_tiers(page, times);
  add_launches(page, times, manifest, tape);
  add_paragraphs(page, "Where the differences come from", times.reasons());
}

}  // namespace cudabpf::replay
