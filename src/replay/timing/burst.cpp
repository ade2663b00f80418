#include "replay/timing/burst.hpp"

#include <utility>

#include "replay/gpu/events.hpp"

namespace cudabpf::replay {

namespace {

constexpr int RELAXED = 2;  // a CUstreamCaptureMode

}  // namespace

Burst::Burst(Burst&& other) noexcept
    : driver_(other.driver_),
      stream_(other.stream_),
      times_(other.times_),
      work_(std::move(other.work_)),
      executable_(std::exchange(other.executable_, nullptr)),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)) {}

Burst::~Burst() {
  if (executable_) static_cast<void>(driver_->destroy_executable.status_of(executable_));
  for (Handle event : {begin_, end_})
    if (event) static_cast<void>(driver_->destroy_event.status_of(event));
}

Result<Burst> Burst::make(const Driver& driver, Handle stream, std::uint32_t times, Work work) {
  Burst burst(driver, stream, times, std::move(work));
  TRY(driver.create_event(&burst.begin_, WITH_TIME));
  TRY(driver.create_event(&burst.end_, WITH_TIME));
  TRY(burst.record());
  return burst;
}

Status Burst::give() {
  for (std::uint32_t i = 0; i < times_; i++)
    if (Status status = work_(stream_); !status.succeeded()) return status;
  return {};
}

// What is refused here may still be accepted outside of a graph.
Result<> Burst::record() {
  TRY(driver_->begin_capture(stream_, RELAXED));
  Status given = give();
  Handle graph = nullptr;
  Status ended = driver_->end_capture.status_of(stream_, &graph);
  if (!graph) return ok();
  if (given.succeeded() && ended.succeeded() &&
      !driver_->instantiate_graph.status_of(&executable_, graph, 0).succeeded())
    executable_ = nullptr;
  return driver_->destroy_graph(graph);
}

Result<> Burst::run() {
  return executable_ ? driver_->launch_graph(executable_, stream_) : give().result();
}

Result<> Burst::warm_up() {
  TRY(run());
  return driver_->synchronize_stream(stream_);
}

Result<std::uint64_t> Burst::ns() {
  TRY(driver_->record_event(begin_, stream_));
  TRY(run());
  TRY(driver_->record_event(end_, stream_));
  TRY(driver_->synchronize_event(end_));
  return ns_between(*driver_, begin_, end_);
}

Result<> Burst::start(std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; i++) TRY(run());
  return driver_->record_event(end_, stream_);
}

Result<> Burst::wait() { return driver_->synchronize_event(end_); }

}  // namespace cudabpf::replay
