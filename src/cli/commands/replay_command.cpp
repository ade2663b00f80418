// cudabpf replay: runs a captured iteration again, without its program, and compares what comes
// out.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/commands.hpp"
#include "cli/commands/replay/kernel_commands.hpp"
#include "cli/commands/replay/opened_capture.hpp"
#include "cli/help.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/invoker.hpp"
#include "cli/request/quantities.hpp"
#include "replay/energy/energy_page.hpp"
#include "replay/energy/program_energy.hpp"
#include "replay/isolated_page.hpp"
#include "replay/listing.hpp"
#include "replay/replay_page.hpp"
#include "replay/replayer.hpp"
#include "replay/times/actual_times.hpp"
#include "replay/times/times_page.hpp"
#include "replay/trial/occurrences.hpp"
#include "replay/worker/worker.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf::cli {

namespace {

constexpr const char* TIMING_FILE = "full_model_timing.json";
constexpr const char* COMPARISON_FILE = "comparison_report.json";
constexpr const char* ENERGY_FILE = "gpu_energy_report.json";

struct ReplayFlags {
  std::string folder, output, timeout = "60s", window = "5s";
  std::string match;
  std::vector<std::string> traces;  // to compare with
  bool list = false, full = false, isolated = false, energy = false, json = false;
  std::uint32_t runs = 10;
  KernelFlags kernel;
};

// The code on the GPU is foreign: what runs it, and reads the folder, has the rights of whoever
// asked for it, not those of sudo or of this program's file.
Result<> give_up_rights() {
  if (caller().user && !privileges::become(*caller().user))
    return errno_error("giving up root's rights");
  if (::geteuid() != 0) privileges::keep_only({});
  return ok();
}

Result<replay::Options> options_of(const ReplayFlags& flags) {
  constexpr std::uint32_t MAX_RUNS = 100'000;
  if (flags.runs > MAX_RUNS)
    return Error{fmt::format("--runs {}: at most {}", flags.runs, MAX_RUNS), {}, exit_code::USAGE};
  replay::Options options;
  options.folder = flags.folder;
  options.runs = flags.runs;
  auto patience = std::chrono::nanoseconds(TRY(parse_duration(flags.timeout, "--timeout")));
  options.patience = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  return options;
}

Result<std::uint32_t> window_of(const ReplayFlags& flags) {
  constexpr std::chrono::milliseconds LEAST(100), MAX(std::chrono::minutes(10));
  auto ns = std::chrono::nanoseconds(TRY(parse_duration(flags.window, "--window")));
  auto window = std::chrono::duration_cast<std::chrono::milliseconds>(ns);
  if (window < LEAST || window > MAX)
    return Error{fmt::format("--window {}: from 100ms to 10m", flags.window), {}, exit_code::USAGE};
  return static_cast<std::uint32_t>(window.count());
}

Result<int> list(const ReplayFlags& flags) {
  auto capture = TRY(open_capture(flags.folder));
  replay::Replayer replayer(capture.manifest(), capture.tape, TRY(options_of(flags)));
  replay::Here here;
  auto gpu = replayer.gpu();
  if (gpu)
    here.gpu = *gpu;
  else
    here.why = "It cannot be run here: " + gpu.error().message;
  print_result(
      flags.json, [&] { return replay::list_json(capture.manifest(), capture.tape, here); },
      [&](Page& page) { replay::add_list(page, capture.manifest(), capture.tape, here); });
  return exit_code::OK;
}

Result<> write_answer(const ReplayFlags& flags, const char* name, const analyze::Json& answer) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(flags.output, failed);
  std::string path = fs::path(flags.output) / name;
  std::ofstream file(path, std::ios::trunc);
  file << answer.dump(2, ' ', false, analyze::Json::error_handler_t::replace) << '\n';
  file.close();
  if (!file) return Error{"cannot write " + path, {}, exit_code::OUTPUT_FAILED};
  return ok();
}

int status_of(const replay::FullReplay& result) {
  if (!result.failures.empty()) return exit_code::FAILED;
  return result.is_different() ? exit_code::DIFFERENT : exit_code::OK;
}

Result<int> replay_all(const ReplayFlags& flags) {
  auto options = TRY(options_of(flags));
  auto capture = TRY(open_capture(flags.folder));
  log::warning("this runs the code in {} on your GPU", flags.folder);
  replay::Replayer replayer(capture.manifest(), capture.tape, options);
  auto result = TRY(replayer.full());
  if (!flags.output.empty())
    TRY(write_answer(flags, TIMING_FILE,
                     replay::timing_json(result, capture.manifest(), capture.tape)));
  print_result(
      flags.json, [&] { return replay::full_json(result, capture.manifest(), capture.tape); },
      [&](Page& page) { replay::add_full(page, result, capture.manifest(), capture.tape); });
  return status_of(result);
}

Result<std::vector<std::uint32_t>> launches_of(const ReplayFlags& flags,
                                               const OpenedCapture& capture) {
  auto distinct = replay::distinct_launches(capture.tape, capture.manifest());
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < distinct.size(); i++)
    if (flags.match.empty() ||
        replay::is_named(flags.match, capture.manifest().kernels[distinct[i].kernel].name))
      wanted.push_back(i);
  if (wanted.empty())
    return Error{flags.match.empty() ? "the capture has no launches"
                                     : "no kernel's name is like " + flags.match,
                 "see --list", exit_code::NO_TARGET};
  return wanted;
}

// Times of another kind of GPU would say nothing about the program's.
Result<> is_of_kind(replay::Replayer& replayer, const OpenedCapture& capture) {
  auto here = TRY(replayer.gpu());
  const std::string& captured = capture.manifest().devices.front().name;
  if (here.name == captured) return ok();
  return Error{fmt::format("it was captured on {}, and this is {}: their times do not compare",
                           captured, here.name),
               "run it on a GPU of that kind; CUDA_VISIBLE_DEVICES chooses one"};
}

// What needs each launch by itself.
struct ByThemselves {
  replay::Options options;
  OpenedCapture capture;
  std::vector<std::uint32_t> launches;
};

Result<ByThemselves> open_launches(const ReplayFlags& flags) {
  auto options = TRY(options_of(flags));
  options.runs = std::max<std::uint32_t>(options.runs, 1);
  auto capture = TRY(open_capture(flags.folder));
  auto launches = TRY(launches_of(flags, capture));
  return ByThemselves{std::move(options), std::move(capture), std::move(launches)};
}

Result<int> replay_isolated(const ReplayFlags& flags) {
  auto opened = TRY(open_launches(flags));
  const OpenedCapture& capture = opened.capture;
  log::warning("this runs the code in {} on your GPU", flags.folder);
  replay::Replayer replayer(capture.manifest(), capture.tape, opened.options);
  auto result = TRY(replayer.isolated(opened.launches));
  print_result(
      flags.json, [&] { return replay::isolated_json(result, capture.manifest(), capture.tape); },
      [&](Page& page) { replay::add_isolated(page, result, capture.manifest(), capture.tape); });
  return status_of(result.tape);
}

struct Compared {
  std::optional<replay::FullReplay> full;  // and the times: with a trace
  replay::IsolatedReplay isolated;
  std::optional<replay::TimesCompared> times;
  std::optional<replay::PredictedEnergy> energy;
};

analyze::Json comparison_of(const Compared& compared, const OpenedCapture& capture) {
  analyze::Json json = replay::full_json(*compared.full, capture.manifest(), capture.tape);
  json.erase("comparison");
  json.erase("timing");
  json["gpu"] = compared.full->gpu.name;
  json.update(replay::times_json(*compared.times, capture.manifest(), capture.tape));
  return json;
}

analyze::Json energy_of(const Compared& compared, const OpenedCapture& capture) {
  analyze::Json json = {{"gpu", compared.isolated.tape.gpu.name}};
  json.update(replay::energy_json(*compared.energy, capture.manifest(), capture.tape));
  return json;
}

Result<> write_answers(const ReplayFlags& flags, const Compared& compared,
                       const OpenedCapture& capture) {
  if (flags.output.empty()) return ok();
  if (compared.times) {
    TRY(write_answer(flags, TIMING_FILE,
                     replay::timing_json(*compared.full, capture.manifest(), capture.tape)));
    TRY(write_answer(flags, COMPARISON_FILE, comparison_of(compared, capture)));
  }
  if (compared.energy) TRY(write_answer(flags, ENERGY_FILE, energy_of(compared, capture)));
  return ok();
}

void print_compared(const ReplayFlags& flags, const Compared& compared,
                    const OpenedCapture& capture) {
  print_result(
      flags.json,
      [&] {
        analyze::Json json;
        if (compared.times) json = comparison_of(compared, capture);
        if (compared.energy) json["energy"] = energy_of(compared, capture);
        return json;
      },
      [&](Page& page) {
        replay::add_outcome(page, compared.full ? *compared.full : compared.isolated.tape,
                            capture.manifest());
        if (compared.times)
          replay::add_times(page, *compared.times, capture.manifest(), capture.tape);
        if (compared.energy)
          replay::add_energy(page, *compared.energy, capture.manifest(), capture.tape);
      });
}

// A trace is read first: what it lacks is known at once.
Result<int> compare(const ReplayFlags& flags) {
  auto [options, capture, launches] = TRY(open_launches(flags));
  Compared compared;
  std::optional<replay::ActualTimes> actual;
  replay::ProgramEnergy program;
  if (!flags.traces.empty()) {
    actual = TRY(replay::read_actual_times(flags.traces, capture.tape, capture.manifest()));
    if (flags.energy) program = TRY(replay::read_program_energy(flags.traces, capture.manifest()));
    replay::Replayer asked(capture.manifest(), capture.tape, options);
    TRY(is_of_kind(asked, capture));
  }
  log::warning("this runs the code in {} on your GPU", flags.folder);
  if (actual) {
    replay::Replayer whole(capture.manifest(), capture.tape, options);
    compared.full = TRY(whole.full());
  }
  if (flags.energy) options.window_ms = TRY(window_of(flags));
  replay::Replayer kernels(capture.manifest(), capture.tape, options);
  compared.isolated = TRY(kernels.isolated(launches));
  if (actual)
    compared.times =
        replay::compare_times(*actual, compared.full->timing, compared.isolated.launches,
                              capture.tape, capture.manifest());
  if (flags.energy) {
    compared.energy = replay::predict_energy(compared.isolated, capture.tape, capture.manifest());
    replay::add_program(*compared.energy, program);
  }
  TRY(write_answers(flags, compared, capture));
  print_compared(flags, compared, capture);
  int status = compared.full ? status_of(*compared.full) : exit_code::OK;
  return status == exit_code::OK ? status_of(compared.isolated.tape) : status;
}

Result<int> replay_one_kernel(const ReplayFlags& flags) {
  auto options = TRY(options_of(flags));
  return replay_kernel(flags.kernel, {flags.folder, flags.output, flags.match, options.runs,
                                      options.patience, flags.json});
}

Result<int> run_replay(const ReplayFlags& flags) {
  TRY(give_up_rights());
  if (!flags.match.empty() && !flags.isolated && !flags.energy && flags.kernel.candidate.empty())
    return Error{"--match goes with --isolated, --energy or --with", {}, exit_code::USAGE};
  if (flags.kernel.is_given()) return replay_one_kernel(flags);
  if (flags.list) return list(flags);
  if (!flags.traces.empty() || flags.energy) return compare(flags);
  return flags.isolated ? replay_isolated(flags) : replay_all(flags);
}

void add_replay_footer(CLI::App& sub) {
  using namespace exit_code;
  add_footer(sub,
             {"cudabpf replay capture --list   needs no GPU",
              "cudabpf replay capture --isolated --match '*gemm*'",
              "cudabpf replay capture --compare run.jsonl   the trace of the same run",
              "cudabpf replay capture --energy   takes seconds for each kernel",
              "cudabpf replay capture --export 'add*' -o kernel   that kernel alone",
              "cudabpf replay kernel --with faster.cubin   does it do the same, and how fast?",
              "cudabpf replay capture --runs 50 --json   on a GPU like the one it was captured on"},
             fmt::format("{} done, and memory is as the program left it; {} it is not; {} wrong "
                         "usage; {} no such kernel; "
                         "{} the output could not be written in full; {} the capture could "
                         "not be read or run.",
                         OK, DIFFERENT, USAGE, NO_TARGET, OUTPUT_FAILED, FAILED));
}

// What is done with the folder.
void add_modes(CLI::App& sub, ReplayFlags& flags) {
  CLI::Option* list_only =
      sub.add_flag("--list", flags.list, "Show what is in it, and whether it can be run here");
  CLI::Option* full =
      sub.add_flag("--full", flags.full,
                   "Run all of it, twice, and compare memory; then time it (default)")
          ->excludes(list_only);
  CLI::Option* isolated =
      sub.add_flag("--isolated", flags.isolated,
                   "Time each kernel by itself, with the inputs that it has on the tape")
          ->excludes(list_only)
          ->excludes(full);
  sub.add_option("--compare", flags.traces,
                 "Run all of it and each kernel, and compare with the times in the program's "
                 "trace, of run --capture --gpu")
      ->type_name("TRACE")
      ->allow_extra_args(false)
      ->excludes(list_only)
      ->excludes(full)
      ->excludes(isolated);
  CLI::Option* energy =
      sub.add_flag("--energy", flags.energy,
                   "Measure the energy of each kernel and of all of it, by the GPU's counter; "
                   "with --compare, beside the program's")
          ->excludes(list_only)
          ->excludes(full)
          ->excludes(isolated);
  sub.add_option("--window", flags.window,
                 "How long each kernel is run over and over for its energy")
      ->type_name("TIME")
      ->capture_default_str()
      ->needs(energy);
  add_kernel_options(sub, flags.kernel,
                     {list_only, full, isolated, energy, sub.get_option("--compare")});
  sub.add_option("--match", flags.match,
                 "With --isolated, --energy or --with: only kernels with such names (*, ?, [abc])")
      ->type_name("PATTERN");
}

void add_details(CLI::App& sub, ReplayFlags& flags) {
  sub.add_option("--runs", flags.runs, "How many runs are timed; 0: none")
      ->type_name("N")
      ->capture_default_str();
  sub.add_option("--timeout", flags.timeout,
                 "Give up an operation that takes longer (500ms, 60s, 5m)")
      ->type_name("TIME")
      ->capture_default_str();
  sub.add_option("-o,--output", flags.output,
                 fmt::format("Write {}, with --compare {}, and with --energy {} into this folder; "
                             "with --export, the new folder",
                             TIMING_FILE, COMPARISON_FILE, ENERGY_FILE))
      ->type_name("DIR")
      ->excludes(sub.get_option("--list"))
      ->excludes(sub.get_option("--isolated"));
  add_json(sub, flags.json);
}

}  // namespace

bool is_replay_worker(int argc, const char* const* argv) {
  return argc == 2 && argv[1] == std::string_view(replay::WORKER) && replay::has_parent();
}

Result<int> work_on_replay() { return replay::work_for_parent(); }

void add_replay(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<ReplayFlags>(
      app, action, "replay",
      "Run a captured iteration again, without its program, and compare the results", run_replay);
  sub.group("Subcommands that read captures");
  sub.add_option("folder", flags.folder, "The capture folder")->type_name("DIR")->required();
  add_modes(sub, flags);
  add_details(sub, flags);
  add_replay_footer(sub);
}

}  // namespace cudabpf::cli
