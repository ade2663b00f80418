#include "cli/hang_reports.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "sink/hangs/hang_report.hpp"
#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"
#include "util/system/fd.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

HangReports::HangReports(std::uint64_t overdue_ns, std::string host, std::string beside,
                         FlightRecorder* recorder)
    : overdue_ns_(overdue_ns),
      host_(std::move(host)),
      beside_(without_ending(std::move(beside))),
      recorder_(recorder),
      watch_(
          overdue_ns, [](std::uint32_t pid) { return Procfs().state(static_cast<pid_t>(pid)); },
          [this](const hangs::Hang& hang) {
            if (recorder_) recorder_->ask("hang");
            add({hang, now_ns(CLOCK_REALTIME), 0});
          },
          [this](std::uint64_t lasted_ns) {
            add({{}, now_ns(CLOCK_REALTIME), lasted_ns});
          }) {}

void HangReports::add(Found found) {
  const std::lock_guard lock(mutex_);
  found_.push_back(std::move(found));
}

void HangReports::tell() {
  std::vector<Found> found;
  {
    const std::lock_guard lock(mutex_);
    found.swap(found_);
  }
  for (const Found& one : found) {
    if (one.lasted_ns)
      log::warning("the hang is over, after {}", human_time(one.lasted_ns));
    else
      tell_begin(one);
  }
}

void HangReports::tell_begin(const Found& found) {
  std::string text = hangs::as_text(found.hang);
  std::string_view rest = text;
  bool first = true;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (first)
      log::warning("hang: {}", line);
    else
      log::note("{}", line);
    first = false;
  }
  auto path = write(hangs::as_json(found.hang, host_, found.realtime_ns, overdue_ns_));
  if (path)
    log::note("  written: {}", *path);
  else
    log::warning("{}", path.error().message);
}

Result<std::string> HangReports::write(const std::string& json) {
  constexpr unsigned MAX = 1000;
  std::error_code ignored;
  if (auto folder = std::filesystem::path(beside_).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ignored);
  while (written_ < MAX) {
    std::string path = fmt::format("{}.hang{}.json", beside_, ++written_);
    Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file && errno == EEXIST) continue;
    if (!file) return errno_error("cannot write " + path);
    for (std::string_view left = json; !left.empty();) {
      ssize_t size = ::write(file.get(), left.data(), left.size());
      if (size <= 0) return errno_error("cannot write " + path);
      left.remove_prefix(static_cast<std::size_t>(size));
    }
    return path;
  }
  return Error{fmt::format("{} files tell of hangs already; no more are written", MAX),
               {},
               exit_code::OUTPUT_FAILED};
}

}  // namespace cudabpf::cli
