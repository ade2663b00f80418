// The energy that a run used: in all, by phase and by iteration, for each GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/energy/energy_model.hpp"
#include "analyze/energy/energy_readings.hpp"
#include "analyze/iterations/execution.hpp"

namespace cudabpf::analyze {

class Energy : public Analysis {
 public:
  struct Stretch {
    std::string name;
    std::uint64_t begin = 0, end = 0;
    EnergyUsed used;
  };
  struct OfIterations : Stretch {
    double count = 0;  // in the window, parts of iterations included
  };
  struct OfGpu {
    std::uint32_t device = 0;
    std::string name;  // as the header has it
    Stretch whole;     // of the part that is wanted
    std::vector<Stretch> phases;
    std::optional<OfIterations> iterations;
    std::optional<IdlePower::Found> idle;
    std::optional<std::uint32_t> pid;  // the only process that had the GPU
    std::string no_pid;                // why there is none
    Stretch process;                   // while this process had the GPU
    std::optional<ModelledEnergy> classes;
    std::string no_classes;  // why there is no model; both empty: no work was measured
  };

  // Phases and iterations are those of the thread that launches most of those wanted.
  Energy(Names& names, ThreadFilter wanted, Part part = {})
      : part_(part),
        own_execution_(std::make_unique<Execution>(names, wanted, 0, part)),
        execution_(*own_execution_),
        model_(names) {}
  // With an execution that the caller feeds, and finishes first.
  Energy(Names& names, const Execution& execution, Part part)
      : part_(part), execution_(execution), model_(names) {}

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  bool found_thread() const { return execution_.thread(); }
  const std::vector<OfGpu>& gpus() const { return gpus_; }
  // Why there are no figures; empty: there are.
  const std::string& why_not() const { return why_not_; }

 private:
  static constexpr std::size_t MAX_GPUS = 64;  // a trace may name any number
  struct Sampled {
    bool has_counter = false;  // which was read at some time, if not in the part that is wanted
    EnergyReadings readings;
    IdlePower idle;
    SoleProcess sole;
  };

  void share_among_classes(OfGpu& gpu, const Sampled& sampled) const;
  void take_sample(const Line& line, bool in_part);
  OfGpu figures_of(std::uint32_t device, const Sampled& sampled, std::uint64_t end) const;
  std::optional<OfIterations> of_iterations(const EnergyReadings& readings) const;

  Part part_;
  std::unique_ptr<Execution> own_execution_;  // null: the caller feeds one
  const Execution& execution_;
  EnergyModel model_;
  std::map<std::uint32_t, Sampled> sampled_;
  std::map<std::uint32_t, std::string> gpu_names_;
  std::vector<OfGpu> gpus_;
  std::string why_not_;
};

Json energy_json(const Energy& energy);
void add_energy(Page& page, const Energy& energy);

}  // namespace cudabpf::analyze
