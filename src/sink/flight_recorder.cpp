#include "sink/flight_recorder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "trace/end.hpp"
#include "trace/files/trace_file.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf {

namespace {

constexpr const char* ASKED = "asked";
// The kept time is divided into this many parts; up to one part more than wanted is kept.
constexpr std::uint64_t PARTS = 16, SHORTEST_PART_NS = 250'000'000;

JsonlOptions in_parts(const FlightRecorder::Options& options) {
  JsonlOptions parts;
  parts.rotate_ns = std::max(options.keep_ns / PARTS, SHORTEST_PART_NS);
  parts.rotate_size = options.most_bytes / PARTS;
  return parts;
}

bool is_regular_file(const std::string& path) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode);
}

// A file that did not exist.
Result<std::pair<TraceFile, std::string>> new_file(const std::string& wanted) {
  for (unsigned number = 1;; number++) {
    std::string path = numbered_path(wanted, number);
    auto file = TraceFile::create(path, false);
    if (file) return std::pair(std::move(*file), std::move(path));
    if (!is_regular_file(path)) return file.error();
  }
}

// Writes everything; false: errno says why not.
bool put_into(TraceFile& file, KeptTrace& kept) {
  for (auto& frame : kept.frames) {
    if (!file.append_whole(*frame)) return false;
    frame.reset();  // its part may have been dropped meanwhile: then its memory is free
  }
  FileEnd end;
  end.part.since = kept.since;
  end.last = false;
  end.totals = kept.totals;
  end.totals.reason = kept.because;
  end.lines = kept.lines + 1;
  return file.append_whole(Frames::frame_of(end_line(end)));
}

Result<> check_path(const std::string& path, bool own_choice) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return Error{"cannot write a trace to " + path + ": it exists and is not a regular file",
                 "use -o to name another file", exit_code::OUTPUT_FAILED};
  std::error_code missing;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (own_choice && !std::filesystem::exists(folder, missing)) folder = folder.parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return ok();
  return errno_error("cannot write a trace to " + folder.string(),
                     "use -o to name a file in another folder", exit_code::OUTPUT_FAILED);
}

}  // namespace

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::open(Options options, OnDump on_dump) {
  TRY(check_path(options.path(), options.own_choice));
  return std::unique_ptr<FlightRecorder>(
      new FlightRecorder(std::move(options), std::move(on_dump)));
}

FlightRecorder::FlightRecorder(Options options, OnDump on_dump)
    : options_(std::move(options)),
      on_dump_(std::move(on_dump)),
      parts_({options_.keep_ns, options_.most_bytes},
             [this](KeptTrace kept) { take(std::move(kept)); }),
      lines_(in_parts(options_), parts_),
      triggers_(options_.triggers),
      limits_({options_.after_trigger_ns, options_.between_ns, options_.most_dumps}) {}

FlightRecorder::~FlightRecorder() {
  parts_.stop();
  stop();
}

void FlightRecorder::begin(const Session& session) {
  lines_.begin(session);
  monotonic_ns_ = session.monotonic_ns;
  writer_ = thread_without_signals([this] { write_all(); });
}

void FlightRecorder::call(const Call& call) {
  lines_.call(call);
  triggered(triggers_.call(call));
}

void FlightRecorder::gpu_error(const GpuError& error) {
  lines_.gpu_error(error);
  triggered(triggers_.gpu_error());
}

void FlightRecorder::process(const Process& process) {
  lines_.process(process);
  triggered(triggers_.process(process));
}

void FlightRecorder::triggered(std::string why) {
  if (!why.empty()) limits_.trigger(std::move(why), now_ns(CLOCK_MONOTONIC));
}

FlightRecorder::Asked FlightRecorder::ask(std::string why) {
  if (ended_) return {Asked::Outcome::ended};
  if (auto space = space_for(options_.path()); space && is_low(*space))
    return {Asked::Outcome::disk_low};
  auto [verdict, wait_ns] = limits_.trigger(std::move(why), now_ns(CLOCK_MONOTONIC));
  switch (verdict) {
    case DumpLimits::Verdict::too_soon:
      return {Asked::Outcome::too_soon, wait_ns};
    case DumpLimits::Verdict::too_many:
      return {Asked::Outcome::too_many};
    case DumpLimits::Verdict::on_its_way:
      break;
  }
  return {Asked::Outcome::on_its_way};
}

void FlightRecorder::open_calls(const OpenCallsNow& calls) {
  if (triggers_.watch_open_calls())
    calls.each([this](const Call& call, std::uint64_t open_ns) {
      triggered(triggers_.open_call(call, open_ns));
    });
  std::string because = writing_ ? std::string() : wanted_because(false);
  if (because.empty()) return;
  writing_ = true;
  calls.each([this](const Call& call, std::uint64_t open_ns) { triggers_.written(call, open_ns); });
  lines_.turn_over(std::move(because), &calls);
}

void FlightRecorder::flush() {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (now > monotonic_ns_) triggered(triggers_.time_passed(now - monotonic_ns_));
  lines_.flush();
}

// Why a dump is to be written now, which is then counted as done; empty: it is not.
std::string FlightRecorder::wanted_because(bool at_the_end) {
  // By the next call, everything done before the request has been read.
  bool asked = std::exchange(noticed_, asked_.exchange(false));
  if (at_the_end) asked |= std::exchange(noticed_, false);
  std::string because = limits_.due(now_ns(CLOCK_MONOTONIC), at_the_end);
  return because.empty() && asked ? ASKED : because;
}

void FlightRecorder::end(const Totals& totals) {
  ended_ = true;
  if (std::string because = wanted_because(true); !because.empty())
    lines_.turn_over(std::move(because), nullptr);  // every call has ended by now
  lines_.end(totals);
  stop();
}

void FlightRecorder::stop() {
  if (!writer_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  came_.notify_one();
  writer_.join();
}

void FlightRecorder::take(KeptTrace kept) {
  {
    std::lock_guard lock(mutex_);
    to_write_.push_back(std::move(kept));
  }
  came_.notify_one();
}

void FlightRecorder::write_all() {
  privileges::keep_only(privileges::own_rights());
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [this] { return !to_write_.empty() || stopping_; });
    if (to_write_.empty()) return;
    KeptTrace kept = std::move(to_write_.front());
    to_write_.pop_front();
    lock.unlock();
    on_dump_(write(std::move(kept)));
    writing_ = false;
    lock.lock();
  }
}

// Writes a complete file, or leaves none.
Result<FlightRecorder::Dump> FlightRecorder::write(KeptTrace kept) const {
  std::string wanted = options_.path();
  if (options_.own_choice) TRY(make_parent_folder(wanted));
  if (auto space = space_for(wanted); kept.because != ASKED && space && is_low(*space))
    return Error{"what is kept (" + kept.because + ") is not written: its disk is nearly full",
                 "it stays in memory: SIGUSR1 writes it all the same", exit_code::OUTPUT_FAILED};
  auto [file, path] = TRY(new_file(wanted));
  if (!put_into(file, kept)) {
    int why = errno;
    ::unlink(path.c_str());
    errno = why;
    return errno_error("cannot write what is kept to " + path,
                       "it stays in memory: ask again once there is room",
                       exit_code::OUTPUT_FAILED);
  }
  return Dump{.path = path,
              .because = kept.because,
              .since_ns = kept.since,
              .covered_ns = kept.totals.duration_ns,
              .cut = kept.cut,
              .events = kept.events,
              .bytes = file.size()};
}

}  // namespace cudabpf
