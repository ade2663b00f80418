#include "replay/launches.hpp"

#include <map>
#include <tuple>

namespace cudabpf::replay {

namespace {

// A seed that is new for each launch makes none of them another kind of work.
constexpr std::size_t MAX_SCALARS = 16;

// Launches that are alike but for their parameters.
struct Alike {
  std::map<std::size_t, std::uint32_t> by_scalars;
  std::uint32_t last = 0;
};

}  // namespace

std::vector<DistinctLaunch> distinct_launches(const Tape& tape, const Manifest& manifest,
                                              std::vector<std::uint32_t>* of_steps) {
  using Key = std::tuple<std::uint32_t, bundle::Dim, bundle::Dim, std::uint32_t, std::string>;
  std::map<Key, Alike> places;
  std::vector<DistinctLaunch> all;
  for (std::size_t i = 0; i < tape.steps().size(); i++) {
    const Step& step = tape.steps()[i];
    if (of_steps) of_steps->push_back(NONE);
    if (!step.launch) continue;
    const bundle::Launch& launch = *step.launch;
    std::string refused = refusal_of(step, manifest);
    Alike& alike = places[{launch.kernel, launch.grid, launch.block, launch.shared, refused}];
    auto known = alike.by_scalars.find(step.scalars);
    std::uint32_t place = alike.last;
    if (known != alike.by_scalars.end()) {
      place = known->second;
    } else if (alike.by_scalars.size() < MAX_SCALARS) {
      place = alike.last = static_cast<std::uint32_t>(all.size());
      alike.by_scalars.emplace(step.scalars, place);
      all.push_back({launch.kernel, launch.grid, launch.block, launch.shared, 0, i, refused});
    }
    all[place].count++;
    if (of_steps) of_steps->back() = place;
  }
  return all;
}

}  // namespace cudabpf::replay
