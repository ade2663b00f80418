#include "sink/log_sink.hpp"

#include <fmt/format.h>

#include "util/console/terminal.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

std::string what_is_traced(const Session& session) {
  if (session.mode == "machine") return "every process on " + session.host;
  if (session.mode == "run") return "a command";
  return count_of(session.pids.size(), "process", "processes");
}

std::string text_of(const Library& library) {
  if (!library.error.empty())
    return fmt::format("{} (not traced: {})", library.path, library.error);
  return fmt::format("{} ({})", library.path, count_of(library.functions, "function", "functions"));
}

std::string text_of(std::uint64_t count, bool uncounted) {
  if (!count) return "an unknown number";
  return with_commas(count) + (uncounted ? " and more" : "");
}

}  // namespace

void LogSink::begin(const Session& session) {
  std::string libraries;
  for (const Library& library : session.libraries)
    libraries += (libraries.empty() ? "" : ", ") + text_of(library);
  write_(fmt::format("tracing {} into {}: {}", what_is_traced(session), written_().path,
                     libraries.empty() ? "no libcuda is known yet" : libraries));
}

void LogSink::gpu_error(const GpuError& error) {
  write_(fmt::format("Xid {} on {}: {}{}", error.xid, error.device, error.meaning,
                     error.pid ? fmt::format(" (pid {})", *error.pid) : ""));
}

void LogSink::library(const Library& library) { write_("found later: " + text_of(library)); }

void LogSink::lost(const LossEvent& loss) {
  Lost& lost = lost_[static_cast<std::size_t>(loss.reason)];
  lost.any = any_lost_ = true;
  lost.count += loss.count.value_or(0);
  lost.uncounted |= !loss.count;
}

void LogSink::flush() {
  if (!any_lost_) return;
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (said_losses_ns_ && now - said_losses_ns_ < LOSSES_EVERY_NS) return;
  said_losses_ns_ = now;
  say_losses();
}

void LogSink::say_losses() {
  for (std::size_t i = 0; i < LOSS_COUNT; i++) {
    Lost& lost = lost_[i];
    if (!lost.any) continue;
    const LossInfo& loss = info(static_cast<Loss>(i));
    write_(fmt::format("{}: {} {}{}{}", loss.degraded ? "incomplete" : "lost",
                       text_of(lost.count, lost.uncounted), loss.name, lost.advised ? "" : ": ",
                       lost.advised ? "" : loss.advice));
    lost = {.advised = true};
  }
  any_lost_ = false;
}

void LogSink::end(const Totals& totals) {
  say_losses();
  TraceWritten written = written_();
  std::uint64_t lost = written.lost;
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (!info(static_cast<Loss>(i)).degraded && static_cast<Loss>(i) != Loss::output)
      lost += totals.losses[i];
  write_(fmt::format("the trace ends ({}): {} in {}, {}, the last {}; {}{}", totals.reason,
                     count_of(totals.counts.calls, "call", "calls"),
                     count_of(written.files, "file", "files"), human_bytes(written.bytes),
                     written.path, lost ? with_commas(lost) + " lost" : "nothing lost",
                     written.complete ? "" : "; its last line could not be written"));
}

}  // namespace cudabpf
