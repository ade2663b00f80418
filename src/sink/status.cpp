#include "sink/status.hpp"

#include <fmt/format.h>

#include "util/system/clock.hpp"

namespace cudabpf {

namespace {
constexpr std::uint64_t REDRAW_NS = 200'000'000;
}

std::string status_text(const StatusFigures& figures) {
  return fmt::format("cudabpf: tracing for {}  {} calls  {}/s  {}  {}  {} lost",
                     clock_time(figures.elapsed_ns), with_commas(figures.calls),
                     with_commas(figures.calls_per_second),
                     count_of(figures.processes, "process", "processes"),
                     human_bytes(figures.written), with_commas(figures.lost));
}

void StatusSink::begin(const Session&) { begin_ns_ = now_ns(CLOCK_MONOTONIC); }

void StatusSink::process(const Process& process) {
  if (process.op == Process::Op::start || process.op == Process::Op::fork)
    processes_++;
  else if (process.op == Process::Op::exit && processes_)
    processes_--;
}

void StatusSink::lost(const LossEvent& loss) {
  if (!info(loss.reason).degraded) lost_ += loss.count.value_or(0);
}

void StatusSink::flush() {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  std::uint64_t since = now - (drawn_ns_ ? drawn_ns_ : begin_ns_);
  if (drawn_ns_ && since < REDRAW_NS) return;
  StatusFigures figures;
  figures.elapsed_ns = now - begin_ns_;
  figures.calls = calls_;
  if (since)
    figures.calls_per_second = static_cast<std::uint64_t>(
        static_cast<double>(calls_ - drawn_calls_) * 1e9 / static_cast<double>(since));
  figures.processes = processes_;
  figures.written = written_();
  figures.lost = lost_;
  screen_.set_status(status_text(figures));
  drawn_ns_ = now;
  drawn_calls_ = calls_;
}

}  // namespace cudabpf
