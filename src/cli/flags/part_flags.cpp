#include "cli/flags/part_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "cli/request/moment.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// A pipe has nothing left when it is read again.
Result<> can_be_read_twice(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code ignored;
    auto status = std::filesystem::status(path, ignored);
    if (path != "-" && !std::filesystem::is_fifo(status) && !std::filesystem::is_socket(status) &&
        !std::filesystem::is_character_file(status))
      continue;
    return Error{analyze::input_name(path) +
                     ": phases and iterations are found by reading a trace twice, and this can be "
                     "read once",
                 "write it to a file first, or give --from and --to", exit_code::USAGE};
  }
  return ok();
}

Result<analyze::NamedPart> between(const PartFlags& flags, const Moments& moments) {
  analyze::NamedPart wanted;
  analyze::Part& part = wanted.part;
  if (!flags.from.empty()) part.from = TRY(parse_moment(flags.from, "--from", moments));
  if (!flags.to.empty()) part.to = TRY(parse_moment(flags.to, "--to", moments));
  if (part.to <= part.from)
    return Error{"--to is not after --from", "both are times since the trace began, or of day",
                 exit_code::USAGE};
  return wanted;
}

}  // namespace

void add_part_flags(CLI::App& sub, PartFlags& flags) {
  CLI::Option* from =
      sub.add_option("--from", flags.from,
                     "Start of the part: seconds since the trace began (1.5s, 200ms, 12us; a bare "
                     "number: seconds), or a time of day (14:03:22.5Z)")
          ->type_name("TIME");
  CLI::Option* to = sub.add_option("--to", flags.to, "End of the part: only what began before it")
                        ->type_name("TIME");
  sub.add_option("--phase", flags.phases,
                 "Only this phase (see summary), or adjacent ones: warm-up,inference")
      ->type_name("PHASE")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes(from)
      ->excludes(to);
  sub.add_option("--iteration", flags.iteration,
                 "Only this iteration, or these: 3, 10-20, last, 30-last; the first is 1")
      ->type_name("N")
      ->excludes(from)
      ->excludes(to)
      ->excludes("--phase");
  sub.add_option("--range", flags.range,
                 "Only calls in the program's ranges of this name, and what GPUs did for them: "
                 "'decode*', or by its path, 'request 0/decode'")
      ->type_name("PATTERN")
      ->check(CLI::Validator(
          [](const std::string& pattern) {
            return std::string(pattern.empty() ? "no range has an empty name" : "");
          },
          ""));
}

void add_whose_flags(CLI::App& sub, PartFlags& flags) {
  // In a merge, pids are larger than any of Linux.
  auto id = [&](const char* name, std::uint32_t& value, const char* type, const char* text) {
    sub.add_option(name, value, text)
        ->type_name(type)
        ->check(CLI::Range(1U, std::numeric_limits<std::uint32_t>::max()).description(""));
  };
  id("--pid", flags.whose.pid, "PID",
     "Phases and iterations of this process, not of the one that launches most");
  id("--tid", flags.whose.tid, "TID",
     "Phases and iterations of this thread, not of the one that launches most");
  sub.footer(sub.get_footer() +
             fmt::format("\nWith --pid or --tid: {} the trace has no such process or thread.",
                         exit_code::NO_TARGET));
}

Result<> check_whose(const analyze::ThreadFilter& whose, bool found) {
  if (!whose.any() || found) return ok();
  std::string process = fmt::format("process {}", whose.pid),
              thread = fmt::format("thread {}", whose.tid);
  std::string who = !whose.tid  ? process
                    : whose.pid ? fmt::format("{} of {}", thread, process)
                                : thread;
  return Error{fmt::format("no call of {} is in the trace", who),
               "`cudabpf calls --by pid` lists the processes, `--by tid` the threads",
               exit_code::NO_TARGET};
}

Result<analyze::NamedPart> find_part(const PartFlags& flags, const Moments& moments,
                                     analyze::TraceReader& reader) {
  if (!flags.is_of_execution()) return between(flags, moments);
  TRY(can_be_read_twice(reader.facts().paths));
  analyze::Execution execution(reader.names(), flags.whose, 0);
  TRY(analyze::analyze(reader, {&execution}));
  TRY(check_whose(flags.whose, execution.thread() != nullptr));
  return flags.iteration.empty() ? analyze::part_of_phases(execution, flags.phases)
                                 : analyze::part_of_iterations(execution, flags.iteration);
}

}  // namespace cudabpf::cli
