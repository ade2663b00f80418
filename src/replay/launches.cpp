#include "replay/launches.hpp"

#include <map>
#include <tuple>

namespace cudabpf::replay {

std::vector<DistinctLaunch> distinct_launches(const Tape& tape, const Manifest& manifest,
                                              std::vector<std::uint32_t>* of_steps) {
  using Key = std::tuple<std::uint32_t, bundle::Dim, bundle::Dim, std::uint32_t, std::string>;
  std::map<Key, std::uint32_t> places;
  std::vector<DistinctLaunch> all;
  for (std::size_t i = 0; i < tape.steps().size(); i++) {
    const Step& step = tape.steps()[i];
    if (of_steps) of_steps->push_back(NONE);
    if (!step.launch) continue;
    const bundle::Launch& launch = *step.launch;
    std::string refused = refusal_of(step, manifest);
    auto [place, is_new] =
        places.try_emplace({launch.kernel, launch.grid, launch.block, launch.shared, refused},
                           static_cast<std::uint32_t>(all.size()));
    if (is_new)
      all.push_back({launch.kernel, launch.grid, launch.block, launch.shared, 0, i, refused});
    all[place->second].count++;
    if (of_steps) of_steps->back() = place->second;
  }
  return all;
}

}  // namespace cudabpf::replay
