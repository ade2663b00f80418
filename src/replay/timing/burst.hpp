// The same work many times, timed as a whole: a GPU's clock for events is too coarse for one short
// kernel.
#pragma once

#include <cstdint>
#include <functional>

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

class Burst {
 public:
  using Work = std::function<Status(Handle stream)>;

  // In a CUDA graph, so that the host does not have to keep up; if the work cannot be recorded, on
  // the stream.
  static Result<Burst> make(const Driver& driver, Handle stream, std::uint32_t times, Work work);
  Burst(Burst&& other) noexcept;
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;
  ~Burst();

  Result<> warm_up();
  // How long all of it takes, from an event before the first to one after the last: the work and,
  // between one and the next, the GPU's own delay.
  Result<std::uint64_t> ns();

  // All of it that many times, without waiting for the end; and that.
  Result<> start(std::uint32_t times);
  Result<> wait();

 private:
  Burst(const Driver& driver, Handle stream, std::uint32_t times, Work work)
      : driver_(&driver), stream_(stream), times_(times), work_(std::move(work)) {}
  Status give();
  Result<> record();
  Result<> run();

  const Driver* driver_;
  Handle stream_;
  std::uint32_t times_;
  Work work_;
  Handle executable_ = nullptr, begin_ = nullptr, end_ = nullptr;
};

}  // namespace cudabpf::replay
