#include "replay/trial/trial_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/listing.hpp"
#include "replay/microseconds.hpp"
#include "replay/trial/value_errors.hpp"
#include "util/demangle/demangle.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json, bundle::Writing;

namespace {

constexpr std::string_view VERDICTS[] = {"same", "within tolerance", "different", "failed"};

// JSON has no infinity.
Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json errors_json(const ValueErrors& errors) {
  return {{"values", errors.values},
          {"not_numbers", errors.not_numbers},
          {"max_absolute", finite(number_of(errors.absolute))},
          {"max_relative", finite(number_of(errors.relative))},
          {"max_scaled", finite(number_of(errors.scaled))}};
}

Json speed_json(const std::vector<std::uint64_t>& original,
                const std::vector<std::uint64_t>& candidate) {
  auto speed = speed_up(original, candidate);
  if (!speed) return {};
  return {{"median", speed->median}, {"min", speed->least}, {"max", speed->most}};
}

Json time_json(const IsolatedTime& time) {
  return {{"warm_us", samples_json(time.warm_ns)}, {"cold_us", samples_json(time.cold_ns)}};
}

bool is_pair_timed(const TimedPair& pair) {
  return pair.original && pair.candidate && !pair.original->warm_ns.empty() &&
         !pair.candidate->warm_ns.empty();
}

Json times_of(const Trial& trial, const Manifest& manifest, const Tape& tape) {
  auto distinct = distinct_launches(tape, manifest);
  Json list = Json::array();
  for (const TimedPair& pair : trial.times) {
    if (!is_pair_timed(pair)) continue;
    Json one = launch_json(distinct[pair.launch], manifest);
    one["original"] = time_json(*pair.original);
    one["candidate"] = time_json(*pair.candidate);
    one["speed_up"] = {{"warm", speed_json(pair.original->warm_ns, pair.candidate->warm_ns)},
                       {"cold", speed_json(pair.original->cold_ns, pair.candidate->cold_ns)}};
    list.push_back(std::move(one));
  }
  return list;
}

const Step& step_of(std::size_t occurrence, const std::vector<Occurrence>& occurrences,
                    const Tape& tape) {
  return tape.steps()[occurrences[occurrence].step];
}

std::string verdict_text(const Trial& trial, const TrialOptions& options) {
  switch (trial.verdict) {
    case Verdict::same:
      return "it leaves all bytes as the original does.";
    case Verdict::within:
      return fmt::format("read as {}, all values are within {} of the original's.",
                         VALUE_TYPES[static_cast<std::size_t>(*options.as)], options.tolerance);
    case Verdict::different:
      if (trial.strayed.empty()) return "it does not leave what the original leaves.";
      return fmt::format("it changes memory that the original does not, first at {:#x}.",
                         trial.strayed.front().begin.value);
    case Verdict::failed:
      break;
  }
  return trial.failure ? trial.failure->text() : "it was not run.";
}

void add_errors_table(Page& page, const Trial& trial) {
  Table table("Largest errors, with all different bytes read as",
              {{"values"}, {"absolute"}, {"relative"}, {"scaled", 2}, {"not a number", 3}});
  for (std::size_t type = 0; type < VALUE_TYPES.size(); type++) {
    ValueErrors all;
    for (const Attempted& one : trial.attempted) add_errors(one.errors[type], all);
    table.row(std::string(VALUE_TYPES[type]),
              {with_commas(all.values), fmt::format("{:.3g}", number_of(all.absolute)),
               fmt::format("{:.3g}", number_of(all.relative)),
               fmt::format("{:.3g}", number_of(all.scaled)),
               all.not_numbers ? with_commas(all.not_numbers) : ""});
  }
  table.add_to(page);
}

void add_occurrences(Page& page, const Trial& trial, const std::vector<Occurrence>& occurrences,
                     const Tape& tape) {
  Table table("Occurrences, in bytes", {{"compared"},
                                        {"different"},
                                        {"not written"},
                                        {"elsewhere"},
                                        {"in rounds", 1},
                                        {"inputs, too", 2},
                                        {"grid", 1, true},
                                        {"block", 1, true}});
  for (std::size_t i = 0; i < trial.attempted.size() && i < occurrences.size(); i++) {
    const Attempted& one = trial.attempted[i];
    const Step& step = step_of(i, occurrences, tape);
    std::uint64_t inputs = i < trial.poisoned.size() ? trial.poisoned[i].inputs : 0;
    table.row(fmt::format("call {}", step.operation->call),
              {with_commas(one.compared), with_commas(one.different),
               one.not_written ? with_commas(one.not_written) : "",
               one.touched.empty() ? "" : with_commas(size_of(one.touched)),
               fmt::format("{} of {}", one.rounds_different, one.rounds),
               inputs ? with_commas(inputs) : "", dim_text(step.launch->grid),
               dim_text(step.launch->block)});
  }
  table.add_to(page);
}

std::string speed_text(const std::optional<SpeedUp>& speed) {
  return speed ? fmt::format("{:.2f} ({:.2f}-{:.2f})", speed->median, speed->least, speed->most)
               : "";
}

void add_times(Page& page, const Trial& trial, const Manifest& manifest, const Tape& tape) {
  auto distinct = distinct_launches(tape, manifest);
  Table table("Launches by themselves, in us", {{"original warm"},
                                                {"candidate"},
                                                {"times as fast", 1, true},
                                                {"original cold", 2},
                                                {"candidate", 2},
                                                {"times as fast", 2, true},
                                                {"grid", 3, true},
                                                {"block", 3, true}});
  for (const TimedPair& pair : trial.times) {
    if (!is_pair_timed(pair)) continue;
    const DistinctLaunch& of = distinct[pair.launch];
    table.row(kernel_name(of.kernel, manifest),
              {median_text(pair.original->warm_ns), median_text(pair.candidate->warm_ns),
               speed_text(speed_up(pair.original->warm_ns, pair.candidate->warm_ns)),
               median_text(pair.original->cold_ns), median_text(pair.candidate->cold_ns),
               speed_text(speed_up(pair.original->cold_ns, pair.candidate->cold_ns)),
               dim_text(of.grid), dim_text(of.block)});
  }
  if (!table.empty()) table.add_to(page);
}

}  // namespace

Json trial_json(const Trial& trial, const TrialOptions& options, const Manifest& manifest,
                const Tape& tape) {
  Json json = {{"verdict", VERDICTS[static_cast<std::size_t>(trial.verdict)]},
               {"kernel", demangle(options.kernel)},
               {"mangled", options.kernel},
               {"candidate", options.candidate},
               {"gpu", trial.gpu.name}};
  if (options.as) {
    json["as"] = VALUE_TYPES[static_cast<std::size_t>(*options.as)];
    json["tolerance"] = options.tolerance;
  }
  auto occurrences = occurrences_in(tape, manifest).value_or(std::vector<Occurrence>());
  json["occurrences"] = Json::array();
  for (std::size_t i = 0; i < trial.attempted.size() && i < occurrences.size(); i++) {
    const Attempted& one = trial.attempted[i];
    Poisoned poisoned = i < trial.poisoned.size() ? trial.poisoned[i] : Poisoned{};
    Json row = occurrence_json(step_of(i, occurrences, tape));
    row.update({{"compared", one.compared},
                {"different", one.different},
                {"not_written", one.not_written},
                {"changed_elsewhere", size_of(one.touched)},
                {"poisoned", size_of(poisoned.ranges)},
                {"inputs_too", poisoned.inputs},
                {"rounds", one.rounds},
                {"rounds_different", one.rounds_different}});
    if (one.different) {
      row["first_difference"] = fmt::format("{:#x}", one.first.value);
      for (std::size_t type = 0; type < VALUE_TYPES.size(); type++)
        row["errors"][std::string(VALUE_TYPES[type])] = errors_json(one.errors[type]);
    }
    json["occurrences"].push_back(std::move(row));
  }
  json["changed_elsewhere"] = size_of(trial.strayed);
  json["launches"] = times_of(trial, manifest, tape);
  json["failed"] = Json::array();
  if (trial.failure) json["failed"].push_back(Writing::json_of(*trial.failure));
  json["notes"] = trial.notes;
  return json;
}

void add_trial(Page& page, const Trial& trial, const TrialOptions& options,
               const Manifest& manifest, const Tape& tape) {
  constexpr std::string_view TITLES[] = {"Same", "Within tolerance", "Different", "Failed"};
  page.paragraph(fmt::format("{} in place of {}, on {}", options.candidate,
                             short_name(demangle(options.kernel)), trial.gpu.name),
                 0);
  page.blank();
  page.statement(TITLES[static_cast<std::size_t>(trial.verdict)], verdict_text(trial, options));
  auto occurrences = occurrences_in(tape, manifest).value_or(std::vector<Occurrence>());
  if (!trial.attempted.empty()) add_occurrences(page, trial, occurrences, tape);
  if (std::any_of(trial.attempted.begin(), trial.attempted.end(),
                  [](const Attempted& one) { return one.different; }))
    add_errors_table(page, trial);
  add_times(page, trial, manifest, tape);
  add_paragraphs(page, "Notes", trial.notes);
}

}  // namespace cudabpf::replay
