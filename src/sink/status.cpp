#include "sink/status.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "util/clock.hpp"
#include "util/log.hpp"

namespace cudabpf {

namespace {
constexpr std::uint64_t REDRAW_NS = 200'000'000;
constexpr std::string_view ERASE = "\r\033[K";
std::atomic<StatusSink*> g_active{nullptr};

void write_to(int fd, std::string_view text) {
  [[maybe_unused]] ssize_t written = ::write(fd, text.data(), text.size());
}
}  // namespace

std::string status_text(const StatusFigures& figures) {
  return fmt::format("cudabpf  {}  {} calls  {}/s  {} {}  {} lost", clock_time(figures.elapsed_ns),
                     with_commas(figures.calls), with_commas(figures.calls_per_second),
                     with_commas(figures.processes),
                     figures.processes == 1 ? "process" : "processes", with_commas(figures.lost));
}

StatusSink::StatusSink(int fd) : fd_(fd), terminal_(terminal_of(fd)) {
  if (!terminal_.is_terminal) return;
  g_active = this;
  log::set_line_guard(clear_active);
}

StatusSink::~StatusSink() {
  if (!terminal_.is_terminal) return;
  log::set_line_guard(nullptr);
  g_active = nullptr;
  clear();
}

void StatusSink::clear_active() {
  if (StatusSink* active = g_active) active->clear();
}

// Keeps the line away for a moment: whoever clears it is about to write.
void StatusSink::clear() {
  std::lock_guard lock(mutex_);
  draw_after_ns_ = now_ns(CLOCK_MONOTONIC) + REDRAW_NS;
  if (!shown_) return;
  shown_ = false;
  write_to(fd_, ERASE);
}

void StatusSink::begin(const Session&) { begin_ns_ = drawn_ns_ = now_ns(CLOCK_MONOTONIC); }

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
  if (!terminal_.is_terminal) return;
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  std::lock_guard lock(mutex_);
  if (!over_ && now >= draw_after_ns_) draw(now);
}

void StatusSink::draw(std::uint64_t now) {
  std::uint64_t since = now - drawn_ns_;
  StatusFigures figures;
  figures.elapsed_ns = now - begin_ns_;
  figures.calls = calls_;
  if (since)
    figures.calls_per_second = static_cast<std::uint64_t>(
        static_cast<double>(calls_ - drawn_calls_) * 1e9 / static_cast<double>(since));
  figures.processes = processes_;
  figures.lost = lost_;
  std::string text = status_text(figures).substr(0, terminal_.width - 1);
  write_to(fd_, fmt::format("\r{}\033[K", text));
  drawn_ns_ = now;
  draw_after_ns_ = now + REDRAW_NS;
  drawn_calls_ = calls_;
  shown_ = true;
}

void StatusSink::end(const Totals&) {
  clear();
  std::lock_guard lock(mutex_);
  over_ = true;
}

}  // namespace cudabpf
