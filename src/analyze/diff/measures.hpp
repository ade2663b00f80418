// Everything about one trace that a comparison needs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/iterations/execution.hpp"
#include "analyze/memory/traced_memory.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/errors.hpp"
#include "analyze/questions/ioctls.hpp"
#include "analyze/questions/issued_gpu_time.hpp"
#include "analyze/questions/kernels.hpp"
#include "state/memory_figures.hpp"

namespace cudabpf::analyze {

// A part of a measure: of one function, kernel or direction, say.
struct PartFigure {
  std::string name;
  std::uint64_t value = 0;
};

class Measures : public Analysis, private LiveMemory::Listener {
 public:
  struct Transfers {
    std::string name;  // "HtoD"
    std::uint64_t count = 0, bytes = 0;
  };
  struct Peak {
    std::string name;  // "device"
    std::uint64_t bytes = 0;
  };
  // Calls that returned and were not made inside others.
  struct Timed {
    std::uint64_t calls = 0, time = 0;  // ns
  };

  explicit Measures(Names& names);

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const TraceFacts& facts() const { return facts_; }
  std::vector<Calls::Figures> functions() const;
  const Kernels& kernels() const { return kernels_; }
  const Execution& execution() const { return execution_; }
  Ioctls::Answer ioctls() const { return ioctls_.answer(); }
  const Errors::Answer& errors() const { return found_errors_; }
  const Timed& in_calls() const { return in_calls_; }    // all of them
  const Timed& waiting() const { return waiting_; }      // those that wait for the GPU
  const Timed& launching() const { return launching_; }  // those that launch kernels
  std::vector<Transfers> transfers() const;
  std::vector<Peak> peaks() const;  // of each kind of memory that was used
  std::uint64_t gpu_peak() const { return gpu_held_.peak; }
  bool gpus_measured() const { return kernels_.gpu().measured(); }
  // GPU time of each iteration after warm-up, the shortest first; empty: not measured.
  const std::vector<std::uint64_t>& gpu_of_iterations() const { return gpu_of_iterations_; }
  const LiveMemory::LeftOut& memory_left_out() const { return memory_.live().left_out(); }

 private:
  // At most this many directions of transfers are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_DIRECTIONS = 256;

  void transfer(const Line& line);
  void time_iterations();
  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended how) override;
  void freed_unknown(const MemoryCall&) override {}

  Names& names_;
  Calls calls_;
  Kernels kernels_;
  Ioctls ioctls_;
  Errors errors_;
  Execution execution_;
  IssuedGpuTime issued_gpu_time_;
  TracedMemory memory_;
  std::map<std::uint32_t, Transfers> transfers_;  // by direction
  Name others_;
  Timed in_calls_, waiting_, launching_;
  MemoryByKind held_{};
  MemoryFigures gpu_held_;
  Errors::Answer found_errors_;
  std::vector<std::uint64_t> gpu_of_iterations_;
  TraceFacts facts_;
};

}  // namespace cudabpf::analyze
