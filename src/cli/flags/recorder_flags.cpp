#include "cli/flags/recorder_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>

#include "cli/flags/capture_flags.hpp"
#include "cli/request/quantities.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// "p99.9": of a million calls, so many may take longer. Nothing: it is not a quantile.
std::optional<std::uint64_t> beyond_quantile(std::string_view text) {
  constexpr std::uint64_t PERCENT = TriggerRules::SHARES / 100;
  if (!text.starts_with('p')) return std::nullopt;
  text.remove_prefix(1);
  std::string_view whole = text.substr(0, text.find('.'));
  std::string_view part = text.substr(std::min(whole.size() + 1, text.size()));
  bool is_whole = !text.ends_with('.');
  auto is_number = [](std::string_view digits) {
    return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (whole.empty() || whole.size() > 2 || part.size() > 4 || !is_whole || !is_number(whole) ||
      !is_number(part))
    return std::nullopt;
  std::uint64_t below = 0, unit = PERCENT;
  for (char digit : whole) below = below * 10 + static_cast<std::uint64_t>(digit - '0') * PERCENT;
  for (char digit : part) below += static_cast<std::uint64_t>(digit - '0') * (unit /= 10);
  if (!below) return std::nullopt;
  return TriggerRules::SHARES - below;
}

Result<TriggerRules> rules_of(const std::vector<std::string>& words) {
  TriggerRules rules;
  for (const std::string& word : words) {
    std::size_t equals = word.find('=');
    std::string what = word.substr(0, equals);
    if (word == TriggerRules::ERROR || word == TriggerRules::XID) {
      (word == TriggerRules::XID ? rules.on_xid : rules.on_error) = true;
      continue;
    }
    std::size_t dot = what.find('.');
    std::string name = what.substr(0, dot);
    auto quantile = dot == what.npos ? std::nullopt : beyond_quantile(what.substr(dot + 1));
    auto is_meant = [&](const std::string& one) { return one == name + "="; };
    auto all = trigger_words();
    if (equals == word.npos || std::none_of(all.begin(), all.end(), is_meant) ||
        (dot != what.npos &&
         (!quantile || name == TriggerRules::IDLE || name == TriggerRules::BEHIND)))
      return Error{"--dump-on " + word + ": there is no such trigger",
                   fmt::format("there are: {}, and quantiles of a class: wait.p99=10ms",
                               fmt::join(all, " ")),
                   exit_code::USAGE};
    std::uint64_t time = TRY(parse_duration(word.substr(equals + 1), "--dump-on " + what));
    if (name == TriggerRules::IDLE) rules.idle_ns = time;
    if (name == TriggerRules::BEHIND) rules.behind_ns = time;
    for (std::size_t i = 0; i < CALL_CLASSES; i++) {
      auto which = static_cast<CallClass>(i);
      if (to_string(which) != name) continue;
      if (quantile)
        rules.slow_shares.push_back({which, what.substr(dot + 1), *quantile, time});
      else
        rules.longest_ns[i] = time;
    }
  }
  return rules;
}

}  // namespace

std::vector<std::string> trigger_words() {
  std::vector<std::string> words{TriggerRules::ERROR, TriggerRules::XID,
                                 std::string(TriggerRules::IDLE) + "=",
                                 std::string(TriggerRules::BEHIND) + "="};
  for (std::size_t i = 0; i < CALL_CLASSES; i++)
    words.push_back(std::string(to_string(static_cast<CallClass>(i))) + "=");
  return words;
}

void RecorderFlags::add_to(CLI::App& app) {
  app.add_option(
         "--keep-last", keep_last,
         "Keep the events of the last TIME in memory, and write them as a trace on SIGUSR1. "
         "Calls are then recorded one by one, which costs what `run` costs")
      ->type_name("TIME");
  app.add_option("--dump-on", dump_on,
                 "Also write the kept events one second after this: error (a failed call, an Xid "
                 "or a crash), "
                 "xid, idle=TIME (no launch for so long by a process that was busy), behind=TIME "
                 "(a rank has "
                 "not entered a collective for so long that others have), CLASS=TIME (a "
                 "call takes longer: launch=10ms, wait=30s), or CLASS.pN=TIME (wait.p99=50ms: more "
                 "than 1% of a process's waits in 10s took longer); may be repeated. Without "
                 "--keep-last, the last 30s are kept")
      ->type_name("TRIGGER")
      ->delimiter(',');
  app.add_option("--dump-every", between, "The minimum time between two dumps of --dump-on [10m]")
      ->type_name("TIME");
  app.add_option("--max-dumps", most_dumps, "Write at most N dumps")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--keep-most", keep_most,
                 "Upper limit of the kept events, compressed; older ones go first [256M]")
      ->type_name("SIZE");
  app.add_option("-o,--output", output,
                 "Kept events are written to FILE.zst, then FILE-2.zst, … "
                 "[traces/trace_<timestamp>.jsonl.zst]")
      ->type_name("FILE");
}

void RecorderFlags::add_token_to(CLI::App& app) {
  app.add_option("--dump-token", dump_token,
                 "Also write them on POST /dump with `Authorization: Bearer TOKEN`. FILE holds the "
                 "token, and must not be readable by other users")
      ->type_name("FILE");
}

Result<std::optional<FlightRecorder::Options>> RecorderFlags::options() const {
  if (keep_last.empty() && dump_on.empty() && dump_token.empty()) {
    if (keep_most.empty() && output.empty()) return std::optional<FlightRecorder::Options>();
    return Error{(output.empty() ? "--keep-most" : "-o") + std::string(": nothing is kept"),
                 "say how long it is kept with --keep-last", exit_code::USAGE};
  }
  FlightRecorder::Options options;
  if (!keep_last.empty()) options.keep_ns = TRY(parse_duration(keep_last, "--keep-last"));
  if (!keep_most.empty()) options.most_bytes = TRY(parse_size(keep_most, "--keep-most"));
  if (options.keep_ns < FlightRecorder::SHORTEST_NS)
    return Error{"--keep-last " + keep_last + " is too short", "it takes 1s at least",
                 exit_code::USAGE};
  if (options.most_bytes < FlightRecorder::LEAST_BYTES)
    return Error{"--keep-most " + keep_most + " is too little", "it takes 1M at least",
                 exit_code::USAGE};
  if (!output.empty() && !output.ends_with(".zst"))
    return Error{"-o " + output + ": what is kept is compressed", "name it " + output + ".zst",
                 exit_code::USAGE};
  options.triggers = TRY(rules_of(dump_on));
  options.most_dumps = most_dumps;
  if (!between.empty()) options.between_ns = TRY(parse_duration(between, "--dump-every"));
  options.own_choice = output.empty();
  options.path = [path = output] { return path.empty() ? default_output(true) : path; };
  return std::optional(std::move(options));
}

}  // namespace cudabpf::cli
