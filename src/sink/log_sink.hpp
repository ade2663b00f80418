// What a service says in its journal (--log): where it traces to, what it lost, how it ended.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cudabpf/sink.hpp"
#include "trace/files/jsonl.hpp"

namespace cudabpf {

class LogSink : public PartialSink {
 public:
  using Write = std::function<void(std::string line)>;
  using Written = std::function<TraceWritten()>;
  // While losses go on, a line every minute says how many have been added.
  static constexpr std::uint64_t LOSSES_EVERY_NS = 60'000'000'000;

  // It comes behind the sink that writes the trace, so that `written` is true at the end.
  LogSink(Write write, Written written) : write_(std::move(write)), written_(std::move(written)) {}

  void begin(const Session& session) override;
  void gpu_error(const GpuError& error) override;
  void library(const Library& library) override;
  void lost(const LossEvent& loss) override;
  void flush() override;
  void end(const Totals& totals) override;

 private:
  struct Lost {
    std::uint64_t count = 0;
    bool any = false, uncounted = false, advised = false;
  };
  void say_losses();

  const Write write_;
  const Written written_;
  std::array<Lost, LOSS_COUNT> lost_{};
  bool any_lost_ = false;
  std::uint64_t said_losses_ns_ = 0;  // 0: never
};

}  // namespace cudabpf
