// A capture, ready to be run on this machine's GPU: its memory, its code, its streams.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/gpu/code.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/gpu/memory.hpp"
#include "replay/gpu/player.hpp"
#include "replay/launches.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

class Bench {
 public:
  // Adds to the answer which addresses are not to be had; then there is no bench.
  static Result<std::unique_ptr<Bench>> set_up(const Driver& driver, Progress& progress,
                                               const Request& request, Answer& answer);

  // What the program had before the iteration. `run`: 0 or 1, for two bytes in unknown memory.
  Result<> load(unsigned run);
  // The same, after the tape has been run since.
  Result<> restore();

  const bundle::Folder& folder() const { return folder_; }
  const Tape& tape() const { return tape_; }
  int device() const { return device_; }
  GpuMemory& memory() { return memory_; }
  const GpuCode& code() const { return code_; }
  Player& player() { return player_; }

 private:
  Bench(const Driver& driver, Progress& progress, bundle::Folder folder, Tape tape)
      : driver_(&driver),
        folder_(std::move(folder)),
        tape_(std::move(tape)),
        memory_(driver, progress),
        code_(driver, progress),
        player_(driver, progress, folder_, tape_, code_) {}

  Result<> make_context(int device, Answer& answer);
  unsigned char unknown(unsigned run) const;

  const Driver* driver_;
  int device_ = 0;
  bundle::Folder folder_;
  Tape tape_;
  GpuMemory memory_;
  GpuCode code_;
  Player player_;
};

// The first GPU that the driver shows (CUDA_VISIBLE_DEVICES can show it another one first).
Result<int> first_device(const Driver& driver);
Result<Gpu> gpu_of(const Driver& driver, int device);

}  // namespace cudabpf::replay
