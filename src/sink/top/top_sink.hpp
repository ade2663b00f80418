// Shows, interval by interval, which processes use CUDA and how much of it: `cudabpf top`.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "cudabpf/sink.hpp"
#include "sink/top/top_model.hpp"

namespace cudabpf {

class TopSink : public PartialSink {
 public:
  struct Options {
    std::uint64_t interval_ns = 1'000'000'000;
    bool once = false;  // the whole run is one interval
  };
  // False: there is no room for it now; then the interval continues. The `last` one is always
  // taken.
  using Show = std::function<bool(const TopInterval& interval, bool last)>;
  TopSink(Options options, Show show) : options_(options), show_(std::move(show)) {}

  void begin(const Session& session) override;
  void call(const Call& call) override { model_.call(call); }
  void driver_call(const DriverCall& call) override { model_.driver_call(call); }
  void gpu_error(const GpuError& error) override { model_.gpu_error(error); }
  void gpu_sample(const GpuSample& sample) override { model_.gpu_sample(sample); }
  void tallied(const Tallies& tallies) override { model_.tallied(tallies); }
  std::uint64_t oldest_tallies_ns() const override { return 100'000'000; }
  void process(const Process& process) override { model_.process(process); }
  void lost(const LossEvent& loss) override { model_.lost(loss); }
  void flush() override;
  void end(const Totals& totals) override;

 private:
  void show(std::uint64_t now_ns, const Totals* totals);  // null: it goes on

  const Options options_;
  const Show show_;
  TopModel model_;
  std::uint64_t begin_ns_ = 0, shown_ns_ = 0;
};

}  // namespace cudabpf
