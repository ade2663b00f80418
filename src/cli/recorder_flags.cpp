#include "cli/recorder_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/capture_flags.hpp"
#include "cli/one_of.hpp"
#include "cli/request/quantities.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

void RecorderFlags::add_to(CLI::App& app) {
  app.add_option(
         "--keep-last", keep_last,
         "Keep the events of the last TIME in memory, and write them as a trace on SIGUSR1. "
         "Calls are then recorded one by one, which costs what `run` costs")
      ->type_name("TIME");
  one_of(app.add_option("--dump-on", dump_on,
                        "Also write them a second after the first failed call, Xid or crash; "
                        "without --keep-last, the last 30s are kept"),
         {"error"});
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
  options.on_error = !dump_on.empty();
  options.own_choice = output.empty();
  options.path = [path = output] { return path.empty() ? default_output(true) : path; };
  return std::optional(std::move(options));
}

}  // namespace cudabpf::cli
