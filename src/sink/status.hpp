// One line on the terminal that says how the trace goes, redrawn in place, gone at its end.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "cudabpf/sink.hpp"
#include "util/terminal.hpp"

namespace cudabpf {

class StatusSink : public Sink {
 public:
  // Draws on `fd`, if that is a terminal. While it lives, messages of log:: clear the line first;
  // so there is one at a time.
  explicit StatusSink(int fd);
  ~StatusSink() override;

  void begin(const Session& session) override;
  void call(const Call&) override { calls_++; }
  void driver_call(const DriverCall&) override { calls_++; }
  void gpu_error(const GpuError&) override {}
  void process(const Process& process) override;
  void library(const Library&) override {}
  void lost(const LossEvent& loss) override;
  void flush() override;
  void end(const Totals&) override;

 private:
  static void clear_active();
  void clear();
  void draw(std::uint64_t now_ns);

  const int fd_;
  const Terminal terminal_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t calls_ = 0, processes_ = 0, lost_ = 0;
  std::uint64_t drawn_calls_ = 0, drawn_ns_ = 0;
  std::mutex mutex_;  // of what follows: messages come from other threads too
  bool shown_ = false, over_ = false;
  std::uint64_t draw_after_ns_ = 0;
};

// "cudabpf  00:12  1,204,331 calls  98,211/s  3 processes  0 lost"
struct StatusFigures {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t calls = 0;
  std::uint64_t calls_per_second = 0;
  std::uint64_t processes = 0;
  std::uint64_t lost = 0;
};
std::string status_text(const StatusFigures& figures);

}  // namespace cudabpf
