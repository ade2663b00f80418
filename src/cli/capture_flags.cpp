#include "cli/capture_flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "cli/invoker.hpp"
#include "cudabpf/abi.h"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/text/glob.hpp"

namespace cudabpf::cli {

namespace {

// Parses a number and one of `units`; the first unit is what a bare number means.
Result<std::uint64_t> parse_quantity(const std::string& text, const std::string& flag,
                                     std::initializer_list<std::pair<const char*, double>> units,
                                     const char* example) {
  Error wrong{fmt::format("{} {}: not a quantity", flag, text),
              fmt::format("give it as {}", example), exit_code::USAGE};
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return wrong;
  }
  std::string unit = text.substr(used);
  for (const auto& [name, factor] : units) {
    if (unit != name) continue;
    double value = number * factor;
    if (!std::isfinite(value) || value <= 0 || value > 9e18) return wrong;
    return static_cast<std::uint64_t>(value);
  }
  return wrong;
}

constexpr std::uint64_t MAX_RING = 1ULL << 30;

// The smallest ring that holds the largest record, a call with the longest string that is read, and
// the head that the kernel puts before it. In a smaller one no long string would ever arrive.
std::uint64_t min_ring() {
  constexpr std::uint64_t RING_HEAD = 8, WORD = 8;
  constexpr std::uint64_t LARGEST =
      RING_HEAD + sizeof(abi::cb_head) + CB_MAX_ARGS * WORD + CB_LONG_STRING;
  return std::max(std::bit_ceil(LARGEST), static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text, const std::string& flag) {
  constexpr double K = 1024;
  return parse_quantity(text, flag,
                        {{"", 1},
                         {"K", K},
                         {"k", K},
                         {"KiB", K},
                         {"M", K * K},
                         {"m", K * K},
                         {"MiB", K * K},
                         {"G", K * K * K},
                         {"g", K * K * K},
                         {"GiB", K * K * K}},
                        "64M, 512K or 1G");
}

Result<std::uint64_t> parse_duration(const std::string& text, const std::string& flag) {
  return parse_quantity(text, flag,
                        {{"", 1e9},
                         {"s", 1e9},
                         {"ms", 1e6},
                         {"us", 1e3},
                         {"µs", 1e3},
                         {"ns", 1},
                         {"m", 60e9},
                         {"h", 3600e9},
                         {"d", 86400e9}},
                        "200ms, 30s, 15m, 2h or a number of seconds");
}

void CaptureFlags::add_to(CLI::App& app, bool can_follow) {
  app.add_option("-o,--output", output,
                 "Write the trace to FILE (FILE.zst: compressed; -: stdout)\n"
                 "[traces/trace_<timestamp>.jsonl]")
      ->type_name("FILE");
  app.add_option("--profile", profile,
                 "How much to trace.\n"
                 "light: launches, copies, memory, synchronisation;\n"
                 "  only entries, where those are enough\n"
                 "default: everything but trivial getters\n"
                 "full: everything")
      ->type_name("light|default|full")
      ->check(CLI::IsMember({"light", "default", "full"}).description(""))
      ->capture_default_str();
  app.add_option("--only", only,
                 "Trace only functions whose names match: patterns\n"
                 "with * and ?, comma-separated, case-sensitive")
      ->type_name("PATTERN");
  app.add_option("--exclude", exclude, "Do not trace functions whose names match such patterns")
      ->type_name("PATTERN");
  app.add_flag("--kernel", kernel,
               "Also trace requests to the NVIDIA driver: its ioctls, decoded,\n"
               "each with the CUDA call that made it");
  app.add_flag("--no-returns", no_returns,
               "Record only entries: half the cost, but no durations,\n"
               "results or returned addresses");
  if (can_follow)
    app.add_flag("--no-follow", no_follow,
                 "Do not trace children of traced processes, nor processes that enter\n"
                 "a container later. Other processes get no probes and pay nothing");
  app.add_option("--duration", duration, "Stop after this long (30s, 15m, 2h)")->type_name("TIME");
  app.add_option("--ring-size", ring_size, "Buffer between the kernel and cudabpf, a power of two")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--rotate-size", rotate_size, "Begin a new file when this one reaches SIZE")
      ->type_name("SIZE");
  app.add_option("--rotate-time", rotate_time, "Begin a new file every TIME")->type_name("TIME");
  app.add_option("--keep", keep, "Keep the N newest rotated files, and delete older ones [all]")
      ->type_name("N");
  app.add_option("--library", libraries, "Also trace this copy of libcuda, wherever it is")
      ->type_name("FILE");
  app.add_option("--no-feature", disabled_features,
                 "Do without a kernel feature (`cudabpf doctor` lists them)")
      ->type_name("NAME");
  app.add_flag("--live", live,
               "Show events on stderr, one per line, instead of the status line;\n"
               "only some if there are too many to read. The trace has them all");
  app.add_flag("-q,--quiet", quiet, "No status line, no hints, no summary");
}

Result<SourceOptions> CaptureFlags::source_options() const {
  SourceOptions options;
  options.filter.profile = *parse_profile(profile);
  options.filter.only = split_patterns(only);
  options.filter.exclude = split_patterns(exclude);
  options.filter.returns = !no_returns;
  options.follow_children = !no_follow;
  options.driver = kernel;
  options.disabled_features = disabled_features;
  options.libraries = libraries;
  options.library_path = value_in(caller().environment, "LD_LIBRARY_PATH");
  auto size = TRY(parse_size(ring_size, "--ring-size"));
  if (size < min_ring())
    return Error{fmt::format("--ring-size {}: the largest records would never fit", ring_size),
                 fmt::format("the least is {}K; 4M, 32M or 128M lose less", min_ring() / 1024),
                 exit_code::USAGE};
  if (size > MAX_RING || !std::has_single_bit(size))
    return Error{fmt::format("--ring-size {}: not a power of two up to 1G", ring_size),
                 "give it as 4M, 32M or 128M", exit_code::USAGE};
  options.ring_size = size;
  return options;
}

Result<JsonlOptions> CaptureFlags::output_options() const {
  JsonlOptions options;
  options.output.path = output;
  if (output.empty()) {
    options.output.path = "traces/trace_" + file_timestamp(now_ns(CLOCK_REALTIME)) + ".jsonl";
    options.output.own_choice = true;
  }
  options.output.keep = keep;
  if (!rotate_size.empty()) options.rotate_size = TRY(parse_size(rotate_size, "--rotate-size"));
  if (!rotate_time.empty()) options.rotate_ns = TRY(parse_duration(rotate_time, "--rotate-time"));
  if (keep && rotate_size.empty() && rotate_time.empty())
    return Error{"--keep without --rotate-size or --rotate-time keeps nothing apart",
                 "say when a new file begins", exit_code::USAGE};
  return options;
}

Result<std::uint64_t> CaptureFlags::duration_ns() const {
  if (duration.empty()) return std::uint64_t{0};
  return parse_duration(duration, "--duration");
}

}  // namespace cudabpf::cli
