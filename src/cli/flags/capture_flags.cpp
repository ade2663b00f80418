#include "cli/flags/capture_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/flags/one_of.hpp"
#include "cli/request/invoker.hpp"
#include "cli/request/quantities.hpp"
#include "collect/machine.hpp"
#include "sink/hangs/hang_watch.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/text/glob.hpp"

namespace cudabpf::cli {

std::string default_output(bool compressed) {
  return "traces/trace_" + file_timestamp(now_ns(CLOCK_REALTIME)) +
         (compressed ? ".jsonl.zst" : ".jsonl");
}

namespace {

constexpr std::uint64_t SHORTEST_WINDOW_NS = 50'000'000, LONGEST_PERIOD_NS = 3'600'000'000'000;

// "%h" in a file's name stands for the host.
std::string with_host(std::string path) {
  std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0
  std::string host = machine_name();
  std::replace(host.begin(), host.end(), '/', '_');
  for (auto at = path.find("%h", name); at != path.npos; at = path.find("%h", at + host.size()))
    path.replace(at, 2, host);
  return path;
}

}  // namespace

void CaptureFlags::add_to(CLI::App& app, bool traces_machine) {
  whole_machine = traces_machine;
  app.add_option("-o,--output", output,
                 "Write the trace to FILE (FILE.zst: compressed; -: stdout)\n"
                 "[traces/trace_<timestamp>.jsonl" +
                     std::string(traces_machine ? ".zst]" : "]"))
      ->type_name("FILE");
  add_profile_to(app);
  app.add_option("--only", only,
                 "Trace only functions whose names match: patterns "
                 "with * and ?, comma-separated, case-sensitive")
      ->type_name("PATTERN");
  app.add_option("--exclude", exclude, "Do not trace functions whose names match such patterns")
      ->type_name("PATTERN");
  std::vector<std::string> keys;
  for (const Api& api : APIS) keys.emplace_back(api.key);
  one_of(app.add_option("--libraries", only_libraries,
                        "Trace the functions of these libraries only, comma-separated [all]"),
         keys)
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--kernel", kernel,
               "Also trace requests to the NVIDIA driver: its ioctls, decoded, "
               "each with the CUDA call that made it");
  add_shapes_and_lines_to(app);
  auto* sampled =
      app.add_flag("--sample", sample,
                   "Sample the GPUs through NVML: activity, power, energy, clocks, memory; every "
                   "MS milliseconds, 20 to 60000 [100; with more than two GPUs, 50 for each]. "
                   "Without this option, they are sampled if NVML finds any");
  sampled->type_name("MS");
  auto* not_sampled = app.add_flag("--no-sample", no_sample, "Do not sample the GPUs");
  app.add_flag(
         "--switches", switches,
         "Record which process held each GPU and for how long (from the driver's context-switch "
         "log). Needs root and the open kernel module 580")
      ->excludes(not_sampled);
  not_sampled->excludes(sampled);
  app.add_flag("--no-returns", no_returns,
               "Record only entries: a third to a half cheaper, but no durations, "
               "results or returned addresses");
  if (!traces_machine)
    app.add_flag("--no-follow", no_follow,
                 "Do not trace children of traced processes, nor processes that enter "
                 "a container later. Other processes get no probes and pay nothing");
  add_ends_and_files(app);
  add_watch_hang_to(app);
  add_library_to(app);
  app.add_option("--no-feature", disabled_features,
                 "Do without a kernel feature (`cudabpf doctor` lists them)")
      ->type_name("FEATURE");
  app.add_flag("--live", live,
               "Show events on stderr, one per line, instead of the status line; "
               "only some if there are too many to read. The trace has them all");
  app.add_flag("-q,--quiet", quiet, "No status line, no hints, no summary");
  app.add_flag("--log", log,
               "Instead of status line, hints and summary, a line on stderr for the start, each "
               "complete file, what is lost, and the end: for a service's journal");
}

void CaptureFlags::add_profile_to(CLI::App& app) {
  one_of(app.add_option("--profile", profile,
                        "How much to trace.\n"
                        "light: launches, copies, memory, synchronisation; "
                        "only entries, where those are enough\n"
                        "default: everything but trivial getters\n"
                        "full: everything"),
         {"light", "default", "full"})
      ->capture_default_str();
}

void CaptureFlags::add_library_to(CLI::App& app) {
  app.add_option("--library", libraries, "Also trace this copy of libcuda")->type_name("FILE");
}

void CaptureFlags::add_ring_size_to(CLI::App& app) {
  app.add_option("--ring-size", ring_size,
                 "Buffer for records that cudabpf has not read yet, a power of two [32M; with "
                 "--inside, 4M for each thread]")
      ->type_name("SIZE");
}

void CaptureFlags::add_watch_hang_to(CLI::App& app) {
  app.add_option("--watch-hang", watch_hang,
                 "If a collective or a wait lasts longer than TIME, or a rank is that far behind, "
                 "report at once which rank the others are waiting for and what it is doing; also "
                 "in FILE.hangN.json beside the trace")
      ->type_name("TIME");
}

CLI::Option* CaptureFlags::add_duration_to(CLI::App& app) {
  return app.add_option("--duration", duration, "Stop after this long (30s, 15m, 2h)")
      ->type_name("TIME");
}

void CaptureFlags::add_kernel_count_to(CLI::App& app) {
  app.add_flag("--kernel", kernel, "Also count ioctls to the NVIDIA driver");
}

void CaptureFlags::add_what_is_counted_to(CLI::App& app) {
  add_profile_to(app);
  add_library_to(app);
  add_ring_size_to(app);
}

void CaptureFlags::add_ends_and_files(CLI::App& app) {
  add_duration_to(app);
  app.add_option("--max-size", max_size, "Stop once this much is written (500M, 20G)")
      ->type_name("SIZE");
  add_ring_size_to(app);
  app.add_option("--rotate-size", rotate_size, "Begin a new file when this one reaches SIZE")
      ->type_name("SIZE");
  app.add_option("--rotate-time", rotate_time, "Begin a new file every TIME")->type_name("TIME");
  app.add_option("--keep", keep, "Keep the N newest rotated files; delete older ones [all]")
      ->type_name("N");
  app.add_option("--keep-size", keep_size,
                 "Keep at most SIZE of rotated files, including the one being written; delete "
                 "older ones. Needs --rotate-size")
      ->type_name("SIZE");
  app.add_flag("--redact", redact,
               "Omit what identifies people, machines and paths: command lines, paths, users, "
               "containers, the host's name. Names of programs and kernels stay");
}

std::string CaptureFlags::for_ebpf_alone() const {
  if (!python_slower.empty()) return "--python-slower";
  if (blocks) return "--blocks";
  for (const std::string& key : only_libraries)
    if (api_of_key(key)->has_probes()) return "--libraries " + key;
  return disabled_features.empty() ? "" : "--no-feature";
}

Result<std::optional<std::uint64_t>> CaptureFlags::sample_period_ns() const {
  if (sample.empty() || sample == "true") return std::optional<std::uint64_t>();
  return std::optional(TRY(parse_sample_period(sample)));
}

void CaptureFlags::add_gpu_to(CLI::App& app) {
  app.add_flag("--gpu", gpu,
               "Also record when each kernel, copy and fill ran on the GPU, and for how long. "
               "libcuda loads a library that gets the times from NVIDIA's CUPTI. --gpu=graphs: "
               "each launch of a graph as a whole, which costs less. --gpu=0.5s/10s: only kernels, "
               "for 0.5s of every 10s, at no cost in between")
      ->type_name("graphs|TIME/TIME");
}

void CaptureFlags::add_ranges_to(CLI::App& app) {
  auto* with = app.add_flag("--ranges", ranges,
                            "Also record the program's own ranges (NVTX), as --inside and --gpu do "
                            "anyway. NVTX loads a library for this");
  app.add_flag("--no-ranges", no_ranges, "With --inside or --gpu: do not record ranges")
      ->excludes(with);
}

void CaptureFlags::add_python_to(CLI::App& app) {
  app.add_flag("--python", python,
               "Also record the Python stack of each launch, copy, fill, allocation, wait and "
               "collective (CPython 3.11 to 3.14). libcuda loads a library for this")
      ->excludes("--python-slower");
}

void CaptureFlags::add_shapes_and_lines_to(CLI::App& app) {
  auto* with_shapes =
      app.add_flag("--shapes", shapes,
                   "Also trace matrix products (cuBLAS, cuBLASLt), with their shapes, as "
                   "--inside does. By eBPF, products of cuBLASLt have no shapes");
  app.add_flag("--no-shapes", no_shapes, "With --inside: do not trace matrix products")
      ->excludes(with_shapes);
  app.add_flag("--blocks", blocks,
               "Also trace the blocks of PyTorch's allocator (by the USDT probes of its "
               "libc10_cuda.so), to show memory that is reserved but not allocated");
  app.add_option("--python-slower", python_slower,
                 "Also record the Python stack of each call that takes longer than TIME (100us, "
                 "2ms; CPython 3.11 to 3.14). It is read by eBPF, also in programs that are "
                 "running already; nothing is loaded into them")
      ->type_name("TIME");
}

// CLI11's text for a flag without a value is "true".
void CaptureFlags::add_gpu_of_all_to(CLI::App& app) {
  app.add_flag("--gpu{0.5s/10s}", gpu,
               "Also count kernels on GPUs, in windows of 0.5s in each 10s, for programs that were "
               "started with CUDA_INJECTION64_PATH=…/libcudabpf-inside.so and "
               "CUDABPF_LISTENER=/run/cudabpf/inside in their environment")
      ->type_name("TIME/TIME");
  app.add_option("--listener", listener,
                 "The socket at which these programs find cudabpf, if not that one")
      ->type_name("PATH");
}

Result<> CaptureFlags::add_gpu_timing(SourceOptions& options) const {
  if (gpu.empty()) return ok();
  options.gpu = GpuTiming::nodes;
  if (gpu == "true" || gpu == "nodes") return ok();
  if (gpu == "graphs") {
    options.gpu = GpuTiming::graphs;
    return ok();
  }
  std::size_t slash = gpu.find('/');
  if (slash == gpu.npos)
    return Error{"--gpu=" + gpu + ": this is neither nodes, graphs nor windows",
                 "--gpu alone records each node of a graph, and --gpu=0.5s/10s half a second in "
                 "each 10s",
                 exit_code::USAGE};
  options.gpu_window_ns = TRY(parse_duration(gpu.substr(0, slash), "--gpu"));
  options.gpu_period_ns = TRY(parse_duration(gpu.substr(slash + 1), "--gpu"));
  if (options.gpu_window_ns < SHORTEST_WINDOW_NS || options.gpu_period_ns > LONGEST_PERIOD_NS ||
      options.gpu_window_ns >= options.gpu_period_ns)
    return Error{"--gpu=" + gpu + ": these are no windows",
                 "a window takes 50ms at least, a period an hour at most, and a window is shorter "
                 "than its period",
                 exit_code::USAGE};
  return ok();
}

// A walk comes while its call is open, as a stack from inside does.
Result<> CaptureFlags::add_slow_stacks(SourceOptions& options) const {
  constexpr std::uint64_t SHORTEST_NS = 1000;
  if (python_slower.empty()) return ok();
  options.python_slower_ns = TRY(parse_duration(python_slower, "--python-slower"));
  if (options.python_slower_ns < SHORTEST_NS)
    return Error{"--python-slower " + python_slower + " is too short", "it takes 1us at least",
                 exit_code::USAGE};
  if (no_returns)
    return Error{"--python-slower and --no-returns: without returns no call is known to be slow",
                 {},
                 exit_code::USAGE};
  options.filter.stacks_follow = true;
  return ok();
}

Result<SourceOptions> CaptureFlags::source_options() const {
  SourceOptions options;
  options.filter.profile = *parse_profile(profile);
  options.filter.only = split_patterns(only);
  options.filter.exclude = split_patterns(exclude);
  for (const std::string& key : only_libraries)
    options.filter.libraries.push_back(api_of_key(key)->id);
  options.filter.shapes = shapes;
  options.filter.blocks = blocks;
  options.filter.returns = !no_returns;
  options.filter.tally = (watch || sums_alone) && !recorder && watch_hang.empty();
  options.filter.holders = !options.filter.tally;
  options.filter.captured_collectives = options.tally_times = sums_alone;
  // Few calls make records then, and an agent on every node should be small.
  constexpr std::uint64_t RING_OF_FEW = 8 << 20;
  if (sums_alone && !recorder) options.ring_size = RING_OF_FEW;
  options.filter.single_launches = single_launches;
  options.follow_children = !no_follow;
  options.driver = kernel;
  options.python = wants_python();
  TRY(add_gpu_timing(options));
  TRY(add_slow_stacks(options));
  options.disabled_features = disabled_features;
  options.libraries = libraries;
  options.library_path = value_in(caller().environment, "LD_LIBRARY_PATH");
  if (!ring_size.empty()) options.ring_size = TRY(parse_ring_size(ring_size));
  return options;
}

Result<JsonlOptions> CaptureFlags::output_options() const {
  JsonlOptions options;
  options.output.path = output;
  options.output.own_choice = among_others;
  if (output.empty()) {
    options.output.path = default_output(whole_machine);
    options.output.own_choice = true;
  }
  for (std::string_view other : {".gz", ".xz", ".bz2", ".lz4", ".br", ".zip", ".zstd", ".ZST"})
    if (std::string_view(options.output.path).ends_with(other))
      return Error{fmt::format("{}: traces are compressed with zstd only", options.output.path),
                   fmt::format("name it {}.zst", options.output.path.substr(
                                                     0, options.output.path.size() - other.size())),
                   exit_code::USAGE};
  options.output.keep = keep;
  options.output.logs = log;
  if (!rotate_size.empty()) options.rotate_size = TRY(parse_size(rotate_size, "--rotate-size"));
  if (!rotate_time.empty()) options.rotate_ns = TRY(parse_duration(rotate_time, "--rotate-time"));
  if (keep && rotate_size.empty() && rotate_time.empty())
    return Error{"--keep needs --rotate-size or --rotate-time", "say when a new file begins",
                 exit_code::USAGE};
  if (!keep_size.empty()) {
    options.output.keep_bytes = TRY(parse_size(keep_size, "--keep-size"));
    if (options.output.keep_bytes < 2 * options.rotate_size || !options.rotate_size)
      return Error{"--keep-size " + keep_size + " needs a --rotate-size of at most half of it",
                   "the file that is being written counts, too", exit_code::USAGE};
  }
  if (options.rotate_size || options.rotate_ns)
    options.output.path = with_host(options.output.path);
  return options;
}

Result<std::uint64_t> CaptureFlags::most_bytes() const {
  if (max_size.empty()) return std::uint64_t{0};
  return parse_size(max_size, "--max-size");
}

Result<std::uint64_t> CaptureFlags::duration_ns() const {
  if (duration.empty()) return std::uint64_t{0};
  return parse_duration(duration, "--duration");
}

Result<std::uint64_t> CaptureFlags::hang_ns() const {
  if (watch_hang.empty()) return std::uint64_t{0};
  std::uint64_t overdue = TRY(parse_duration(watch_hang, "--watch-hang"));
  if (overdue < hangs::HangWatch::SHORTEST_NS)
    return Error{"--watch-hang " + watch_hang + " is too short", "it takes 1s at least",
                 exit_code::USAGE};
  if (no_returns)
    return Error{"--watch-hang and --no-returns: without returns it is not known what is open",
                 {},
                 exit_code::USAGE};
  return overdue;
}

}  // namespace cudabpf::cli
