// One line on the terminal that says how the trace is going; redrawn in place, erased at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cudabpf/sink.hpp"
#include "util/console/screen.hpp"

namespace cudabpf {

class StatusSink : public PartialSink {
 public:
  StatusSink(Screen& screen, std::function<std::uint64_t()> written)
      : screen_(screen), written_(std::move(written)) {}

  void begin(const Session& session) override;
  void call(const Call&) override { calls_++; }
  void driver_call(const DriverCall&) override { calls_++; }
  void process(const Process& process) override;
  void lost(const LossEvent& loss) override;
  void flush() override;
  void end(const Totals&) override { screen_.set_status({}); }

 private:
  Screen& screen_;
  std::function<std::uint64_t()> written_;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t calls_ = 0, processes_ = 0, lost_ = 0;
  std::uint64_t drawn_calls_ = 0, drawn_ns_ = 0;
};

// "cudabpf: tracing for 00:12  1,204,331 calls  98,211/s  3 processes  310 MiB  0 lost"
struct StatusFigures {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t calls = 0;
  std::uint64_t calls_per_second = 0;
  std::uint64_t processes = 0;
  std::uint64_t written = 0;  // bytes
  std::uint64_t lost = 0;
};
std::string status_text(const StatusFigures& figures);

}  // namespace cudabpf
