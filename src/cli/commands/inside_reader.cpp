// cudabpf as the library inside a process starts it: records that process until it ends.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/flags/capture_flags.hpp"
#include "cli/request/invoker.hpp"
#include "cli/request/output_pattern.hpp"
#include "cli/session.hpp"
#include "collect/bpf/nvidia_devices.hpp"
#include "collect/inside/inside_source.hpp"
#include "collect/machine.hpp"
#include "cudabpf/inside.h"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* OUTPUT = "CUDABPF_OUTPUT";    // a folder or a pattern for the trace's path
constexpr const char* OPTIONS = "CUDABPF_OPTIONS";  // what `run` takes: "--profile full --kernel"

// CUDABPF_OPTIONS, separated by spaces.
Result<CaptureFlags> flags_in(const std::vector<std::string>& environment) {
  CLI::App app;
  app.set_help_flag();
  CaptureFlags flags;
  flags.add_to(app, false);
  flags.add_gpu_to(app);
  flags.add_python_to(app);
  app.add_flag("--inside");  // as it is
  std::istringstream words(value_in(environment, OPTIONS));
  std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
  join_optional_values(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as the parser wants them
  std::string wrong;
  try {
    app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    wrong = "unknown argument " + app.remaining(true).front();
  } catch (const CLI::ParseError& error) {
    wrong = error.what();
  }
  if (std::string option = flags.for_ebpf_alone(); wrong.empty() && !option.empty())
    wrong = option + " works only with eBPF";
  if (wrong.empty() && flags.live) wrong = "--live cannot be used here";
  if (wrong.empty() && !flags.output.empty())
    wrong = fmt::format("-o cannot be used here: {} says where the trace goes", OUTPUT);
  if (!wrong.empty()) return Error{fmt::format("{}: {}", OPTIONS, wrong), {}, exit_code::USAGE};
  flags.quiet = true;
  flags.among_others = true;
  return flags;
}

// A launcher can make no folders. What is wrong is said here, where it is known that the path does
// not come from -o.
Result<> check_output(const std::string& path) {
  fs::path folder = fs::absolute(path).parent_path();
  std::error_code failed, missing;
  fs::create_directories(folder, failed);
  auto kind = fs::status(path, missing).type();
  bool is_other = kind != fs::file_type::none && kind != fs::file_type::not_found &&
                  kind != fs::file_type::regular;
  if (path == "-" || is_other)
    return Error{fmt::format("{}={}: this is not a regular file", OUTPUT, path),
                 fmt::format("set {} to a folder, or to a file in one", OUTPUT), exit_code::USAGE};
  if (!failed && ::access(folder.c_str(), W_OK | X_OK) != 0)
    failed = std::error_code(errno, std::generic_category());
  if (!failed) return ok();
  return Error{
      fmt::format("{}={}: cannot write to {}: {}", OUTPUT, path, folder.string(), failed.message()),
      fmt::format("set {} to a folder that can be written to, or to a file in one", OUTPUT),
      exit_code::OUTPUT_FAILED};
}

// A regular file of this user's at this path, to add to. Whatever else is there may be a FIFO, at
// which opening waits for somebody to read, or a link to a file that is nobody's business.
Fd own_file(const std::string& path) {
  constexpr mode_t FOR_ALL = 0666;
  constexpr int FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd file(::open(path.c_str(), FLAGS, FOR_ALL));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid())
    return {};
  return file;
}

// The program's standard error is not cudabpf's: what there is to say from now on stands in a file
// beside the trace, or in one with another number if something else is there. It is removed if
// nothing was said.
class OwnMessages {
 public:
  explicit OwnMessages(const std::string& path) {
    constexpr int MAX = 10;
    Fd file;
    for (int number = 1; !file && number < MAX; number++) {
      path_ = number == 1 ? path : fmt::format("{}.{}", path, number);
      file = own_file(path_);
    }
    if (!file) file = Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(file.get(), STDERR_FILENO);
  }
  ~OwnMessages() {
    struct stat said {};
    if (::fstat(STDERR_FILENO, &said) == 0 && S_ISREG(said.st_mode) && said.st_size == 0)
      ::unlink(path_.c_str());
  }
  OwnMessages(const OwnMessages&) = delete;
  OwnMessages& operator=(const OwnMessages&) = delete;

 private:
  std::string path_;
};

// The library waits for this.
Result<> report_ready(const std::string& listener) {
  Fd ready(CI_READY_FD);
  if (::write(ready.get(), listener.data(), listener.size()) !=
      static_cast<ssize_t>(listener.size()))
    return errno_error("the traced program no longer waits");
  return ok();
}

}  // namespace

bool is_inside_reader(int argc, const char* const* argv) {
  return argc == 3 && std::strcmp(argv[1], CI_READER) == 0;
}

Result<int> read_inside(const char* text) {
  std::uint32_t pid = 0;
  std::from_chars(text, text + std::strlen(text), pid);
  struct stat ready {};
  if (!pid || ::fstat(CI_READY_FD, &ready) != 0 || !S_ISFIFO(ready.st_mode))
    return Error{fmt::format("{} is for the library that records inside a process", CI_READER),
                 "see `cudabpf run --inside`", exit_code::USAGE};
  ::fcntl(CI_READY_FD, F_SETFD, FD_CLOEXEC);

  const auto& environment = caller().environment;
  auto flags = TRY(flags_in(environment));
  Session header;
  describe_machine(header);
  std::string wanted = value_in(environment, OUTPUT);
  std::error_code missing;
  flags.output = TRY(output_path(wanted, fs::is_directory(wanted, missing),
                                 {std::to_string(pid), header.host, rank_in(environment)},
                                 file_timestamp(now_ns(CLOCK_REALTIME))));
  TRY(check_output(flags.output));
  auto options = TRY(flags.source_options());
  options.filter.shapes = flags.wants_shapes();
  std::string listener = TRY(Listener::choose_path(value_in(environment, "TMPDIR")));
  auto devices = options.driver ? nvidia_devices() : DriverDevices();
  std::optional<OwnMessages> beside;  // until the session has said its last
  auto session = TRY(CaptureSession::open(flags, options, [&](SourceOptions chosen) {
    return InsideSource::open(
        std::move(chosen), {listener, geteuid(), devices, InsideSource::Place::For::one_process});
  }));
  header.mode = "run";
  header.python = options.python;
  header.command = Procfs().process(static_cast<pid_t>(pid)).args;
  std::string messages = session->trace_path() + ".log";
  TRY(session->begin(std::move(header),
                     [pid](Capture& capture) { capture.source().select_process(pid); }));
  TRY(report_ready(listener));
  beside.emplace(messages);
  return session->run_until({.command = nullptr, .pids = {pid}});
}

}  // namespace cudabpf::cli
