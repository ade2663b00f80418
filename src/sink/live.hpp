// Shows what happens, one line per event, for a person to watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cudabpf/sink.hpp"
#include "util/hash.hpp"

namespace cudabpf {

// Without samples, of which ten a second would hide the rest, and without what GPUs did, which
// comes long after its call.
class LiveSink : public PartialSink {
 public:
  // False: there is no room for it now. The `last` text is always taken.
  using Write = std::function<bool(std::string_view text, bool last)>;
  explicit LiveSink(Write write) : write_(std::move(write)) {}

  void call(const Call& call) override;
  void driver_call(const DriverCall& call) override;
  void gpu_error(const GpuError& error) override;
  void process(const Process& process) override;
  void library(const Library& library) override;
  void lost(const LossEvent& loss) override;
  void flush() override { hand_over(false); }
  void end(const Totals&) override { hand_over(true); }

 private:
  void add(std::uint64_t ts, std::string_view process, std::string_view what);
  void hand_over(bool last);
  std::string name_of(std::uint32_t pid) const;  // "python/4242"

  Write write_;
  std::string pending_;
  // The trace must not wait for a terminal, and only as much is shown as a person can read. Lines
  // left out before and after the pending ones are counted.
  std::size_t lines_ = 0;
  std::size_t left_out_before_ = 0, left_out_ = 0;
  HashMap<std::uint32_t, std::string> names_;
};

}  // namespace cudabpf
