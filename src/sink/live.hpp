// What happens, a line each, for a person to watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cudabpf/sink.hpp"

namespace cudabpf {

class LiveSink : public Sink {
 public:
  using Write = std::function<void(std::string_view text)>;
  explicit LiveSink(Write write) : write_(std::move(write)) {}

  void begin(const Session&) override {}
  void call(const Call& call) override;
  void driver_call(const DriverCall& call) override;
  void gpu_error(const GpuError& error) override;
  void process(const Process& process) override;
  void library(const Library& library) override;
  void lost(const LossEvent& loss) override;
  void flush() override;
  void end(const Totals&) override { flush(); }

 private:
  void add(std::uint64_t ts, std::string_view who, std::string_view what);
  std::string name_of(std::uint32_t pid) const;  // "python/4242"

  Write write_;
  std::string pending_;
  std::size_t lines_ = 0;     // since the last flush; more than can be read are
  std::size_t left_out_ = 0;  // left out, for the trace is not to wait for a terminal
  std::unordered_map<std::uint32_t, std::string> names_;
};

}  // namespace cudabpf
