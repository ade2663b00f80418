// The energy that a run used: in all, by phase and by iteration, for each GPU.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/course/course.hpp"
#include "analyze/energy/energy_model.hpp"
#include "analyze/energy/energy_readings.hpp"

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
    Stretch process;                   // while it had it
    std::optional<ModelledEnergy> classes;
    std::string no_classes;  // why there is no model; both empty: no work was measured
  };

  // Phases and iterations are those of the thread that launches most of those wanted.
  Energy(Names& names, Wanted wanted, Part part = {})
      : part_(part),
        own_course_(std::make_unique<Course>(names, wanted, 0, part)),
        course_(*own_course_),
        model_(names) {}
  // With a course that others follow, and that they finish first.
  Energy(Names& names, const Course& course, Part part)
      : part_(part), course_(course), model_(names) {}

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  bool found_thread() const { return course_.thread(); }
  const std::vector<OfGpu>& gpus() const { return gpus_; }
  // Why there are no figures; empty: there are.
  const std::string& why_not() const { return why_not_; }

 private:
  static constexpr std::size_t MOST_GPUS = 64;  // a trace may name any number
  struct Sampled {
    EnergyReadings readings;
    IdlePower idle;
    SoleProcess sole;
  };

  void share_among_classes(OfGpu& gpu, const Sampled& sampled) const;
  void take_sample(const Line& line, bool in_part);
  OfGpu figures_of(std::uint32_t device, const Sampled& sampled, std::uint64_t end) const;
  std::optional<OfIterations> of_iterations(const EnergyReadings& readings) const;

  Part part_;
  std::unique_ptr<Course> own_course_;  // null: others follow it
  const Course& course_;
  EnergyModel model_;
  std::map<std::uint32_t, Sampled> sampled_;
  std::map<std::uint32_t, std::string> gpu_names_;
  std::vector<OfGpu> gpus_;
  std::string why_not_;
};

Json energy_json(const Energy& energy);
void add_energy(Page& page, const Energy& energy);

}  // namespace cudabpf::analyze
