// How far the process that replays has come, in memory that its parent sees: also if it has ended,
// or does nothing any more.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::replay {

class Progress {
 public:
  // In a file without a name, which the process inherits.
  static Result<Progress> make() {
    Fd file(::memfd_create("cudabpf-replay", MFD_CLOEXEC));
    if (!file || ::ftruncate(file.get(), sizeof(State)) != 0)
      return errno_error("make shared memory");
    return in(std::move(file));
  }
  static Result<Progress> in(Fd file) {
    void* memory =
        ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return errno_error("map shared memory");
    return Progress(std::move(file), static_cast<State*>(memory));
  }
  Progress(Progress&& other) noexcept
      : file_(std::move(other.file_)), state_(std::exchange(other.state_, nullptr)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (state_) ::munmap(state_, sizeof(State));
  }

  int fd() const { return file_.get(); }

  void beat() { state_->beats.fetch_add(1); }
  void at(std::uint64_t step) {
    state_->step.store(step + 1);
    beat();
  }
  void at_no_step() { state_->step.store(0); }

  std::uint64_t beats() const { return state_->beats.load(); }
  std::optional<std::uint64_t> step() const {
    std::uint64_t next = state_->step.load();
    return next ? std::optional(next - 1) : std::nullopt;
  }

 private:
  struct State {  // zeroes at first
    std::atomic<std::uint64_t> beats, step;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  Progress(Fd file, State* state) : file_(std::move(file)), state_(state) {}

  Fd file_;
  State* state_;
};

}  // namespace cudabpf::replay
