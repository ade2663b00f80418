#include "cli/commands/replay/kernel_commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "cli/commands/replay/opened_capture.hpp"
#include "cli/flags/one_of.hpp"
#include "replay/export/export_page.hpp"
#include "replay/export/exporter.hpp"
#include "replay/trial/trial_page.hpp"
#include "util/console/log.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::uint32_t MAX_OCCURRENCES = 64;

// A folder that is gone with this.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make() {
    const char* where = ::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
    std::string path = std::string(where && *where ? where : "/tmp") + "/cudabpf-kernel-XXXXXX";
    if (!::mkdtemp(path.data())) return errno_error("make a folder in " + path);
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code failed;
    if (!path_.empty()) std::filesystem::remove_all(path_, failed);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

replay::ExportOptions export_options(const KernelFlags& flags, const KernelRequest& request,
                                     std::string kernel, std::string output) {
  replay::ExportOptions options;
  options.folder = request.folder;
  options.output = std::move(output);
  options.kernel = std::move(kernel);
  options.occurrences = flags.occurrences;
  options.patience = request.patience;
  return options;
}

Result<int> export_one(const KernelFlags& flags, const KernelRequest& request) {
  if (request.output.empty())
    return Error{"--export needs a new folder to write to", "name it with -o", exit_code::USAGE};
  auto capture = TRY(open_capture(request.folder));
  auto kernel =
      TRY(replay::kernel_like(flags.export_pattern, capture.tape, capture.folder.manifest()));
  log::warning("this runs the code in {} on your GPU", request.folder);
  auto made = TRY(replay::export_kernel(capture.folder, capture.tape,
                                        export_options(flags, request, kernel, request.output)));
  print_result(
      request.json, [&] { return replay::export_json(made, request.output, capture.tape); },
      [&](Page& page) { replay::add_export(page, made, request.output, capture.tape); });
  return made.is_right() ? exit_code::OK : exit_code::DIFFERENT;
}

Result<replay::TrialOptions> trial_options(const KernelFlags& flags, const KernelRequest& request,
                                           const std::string& kernel) {
  replay::TrialOptions options;
  options.folder = request.folder;
  options.candidate = flags.candidate;
  options.kernel = kernel;
  options.runs = request.runs;
  options.patience = request.patience;
  options.tolerance = flags.tolerance;
  for (std::size_t i = 0; i < replay::VALUE_TYPES.size(); i++)
    if (flags.as == replay::VALUE_TYPES[i]) options.as = static_cast<replay::ValueType>(i);
  if (options.as.has_value() && flags.tolerance >= 0) return options;
  if (flags.as.empty()) return options;
  return Error{"--tolerance must not be negative", {}, exit_code::USAGE};
}

int status_for(replay::Verdict verdict) {
  if (verdict == replay::Verdict::failed) return exit_code::FAILED;
  return verdict == replay::Verdict::different ? exit_code::DIFFERENT : exit_code::OK;
}

Result<int> try_it(const OpenedCapture& capture, const replay::TrialOptions& options, bool json) {
  auto trial = TRY(replay::try_candidate(capture.folder, capture.tape, options));
  const replay::Manifest& manifest = capture.folder.manifest();
  print_result(
      json, [&] { return replay::trial_json(trial, options, manifest, capture.tape); },
      [&](Page& page) { replay::add_trial(page, trial, options, manifest, capture.tape); });
  return status_for(trial.verdict);
}

// What is no export is made one first, which is gone afterwards.
Result<int> try_other_code(const KernelFlags& flags, const KernelRequest& request) {
  auto capture = TRY(open_capture(request.folder));
  auto kernel = TRY(replay::kernel_like(request.match, capture.tape, capture.folder.manifest()));
  auto options = TRY(trial_options(flags, request, kernel));
  log::warning("this runs the code in {} and {} on your GPU", request.folder, flags.candidate);
  if (replay::occurrences_in(capture.tape, capture.folder.manifest()))
    return try_it(capture, options, request.json);
  auto temporary = TRY(TemporaryFolder::make());
  auto made = TRY(replay::export_kernel(capture.folder, capture.tape,
                                        export_options(flags, request, kernel, temporary.path())));
  if (!made.is_right())
    return Error{"the kernel by itself does not leave what it left in the program",
                 "--export says more"};
  options.folder = temporary.path();
  auto alone = TRY(open_capture(temporary.path()));
  return try_it(alone, options, request.json);
}

}  // namespace

void add_kernel_options(CLI::App& sub, KernelFlags& flags,
                        std::initializer_list<CLI::Option*> others) {
  CLI::Option* exported =
      sub.add_option("--export", flags.export_pattern,
                     "Take the kernel with such a name (*, ?, [abc]) into a new folder, -o, that "
                     "holds it alone")
          ->type_name("PATTERN");
  CLI::Option* with =
      sub.add_option("--with", flags.candidate,
                     "Run this cubin, fat binary or PTX in the kernel's place: compare what it "
                     "leaves, and time both")
          ->type_name("FILE")
          ->excludes(exported);
  for (CLI::Option* option : {exported, with})
    for (CLI::Option* other : others) option->excludes(other);
  sub.add_option("--occurrences", flags.occurrences, "How many of its launches --export takes")
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* as = one_of(sub.add_option("--as", flags.as, "With --with: what the bytes are"),
                           {"f16", "bf16", "f32", "f64"})
                        ->needs(with);
  CLI::Option* tolerance =
      sub.add_option("--tolerance", flags.tolerance,
                     "With --as: by how much values may be others, as a part of those expected, or "
                     "of 1 where they are smaller")
          ->type_name("N")
          ->needs(as);
  as->needs(tolerance);
}

Result<int> replay_kernel(const KernelFlags& flags, const KernelRequest& request) {
  if (!flags.occurrences || flags.occurrences > MAX_OCCURRENCES)
    return Error{fmt::format("--occurrences {}: 1 to {}", flags.occurrences, MAX_OCCURRENCES),
                 {},
                 exit_code::USAGE};
  return flags.candidate.empty() ? export_one(flags, request) : try_other_code(flags, request);
}

}  // namespace cudabpf::cli
