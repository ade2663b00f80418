#include "cli/flags/recorder_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/flags/capture_flags.hpp"
#include "cli/request/quantities.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

Result<TriggerRules> rules_of(const std::vector<std::string>& words) {
  TriggerRules rules;
  for (const std::string& word : words) {
    std::size_t equals = word.find('=');
    std::string what = word.substr(0, equals);
    if (word == TriggerRules::ERROR || word == TriggerRules::XID) {
      (word == TriggerRules::XID ? rules.on_xid : rules.on_error) = true;
      continue;
    }
    auto is_meant = [&](const std::string& one) { return one == what + "="; };
    auto all = trigger_words();
    if (equals == word.npos || std::none_of(all.begin(), all.end(), is_meant))
      return Error{"--dump-on " + word + ": there is no such trigger",
                   fmt::format("there are: {}", fmt::join(all, " ")), exit_code::USAGE};
    std::uint64_t time = TRY(parse_duration(word.substr(equals + 1), "--dump-on " + what));
    if (what == TriggerRules::IDLE) rules.idle_ns = time;
    for (std::size_t i = 0; i < CALL_CLASSES; i++)
      if (to_string(static_cast<CallClass>(i)) == what) rules.longest_ns[i] = time;
  }
  return rules;
}

}  // namespace

std::vector<std::string> trigger_words() {
  std::vector<std::string> words{TriggerRules::ERROR, TriggerRules::XID,
                                 std::string(TriggerRules::IDLE) + "="};
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
                 "Also write them a second after this: error (a failed call, an Xid or a crash), "
                 "xid, idle=TIME (no launch for so long by a process that was busy), or CLASS=TIME "
                 "(a call took longer: launch=10ms, wait=30s); may be repeated. Without "
                 "--keep-last, the last 30s are kept")
      ->type_name("TRIGGER")
      ->delimiter(',');
  app.add_option("--dump-every", between,
                 "The least time between two that --dump-on has written [10m]")
      ->type_name("TIME");
  app.add_option("--max-dumps", most_dumps, "How many it writes at most")
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

Result<std::optional<FlightRecorder::Options>> RecorderFlags::options() const {
  if (keep_last.empty() && dump_on.empty()) {
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
