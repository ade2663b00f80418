#include "replay/export/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "replay/export/granules.hpp"

namespace cudabpf::replay {

std::vector<std::size_t> chosen_steps(const std::vector<Candidate>& candidates, std::size_t count) {
  std::vector<std::size_t> taken;  // of the candidates
  std::set<std::string> shapes, inputs;
  std::vector<std::size_t> distances(candidates.size(), ~std::size_t{0});  // to those taken
  std::vector<bool> is_taken(candidates.size());
  while (taken.size() < std::min(count, candidates.size())) {
    std::size_t best = 0;
    std::tuple<bool, bool, std::size_t> most;
    bool is_any = false;
    for (std::size_t i = 0; i < candidates.size(); i++) {
      std::tuple<bool, bool, std::size_t> worth{!shapes.contains(candidates[i].shape),
                                                !inputs.contains(candidates[i].inputs),
                                                distances[i]};
      if (is_taken[i] || (is_any && worth <= most)) continue;
      is_any = true;
      best = i;
      most = worth;
    }
    is_taken[best] = true;
    taken.push_back(best);
    shapes.insert(candidates[best].shape);
    inputs.insert(candidates[best].inputs);
    for (std::size_t i = 0; i < candidates.size(); i++)
      distances[i] = std::min(distances[i], i < best ? best - i : i - best);
  }
  std::vector<std::size_t> steps;
  steps.reserve(taken.size());
  for (std::size_t place : taken) steps.push_back(candidates[place].step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

Result<std::vector<Candidate>> candidates_for(const std::string& name, const bundle::Folder& folder,
                                              const Tape& tape) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < tape.steps().size(); i++) {
    const Step& step = tape.steps()[i];
    if (!step.launch || folder.manifest().kernels[step.launch->kernel].name != name ||
        !refusal_of(step, folder.manifest()).empty())
      continue;
    const bundle::Launch& launch = *step.launch;
    std::string inputs = TRY(folder.data(launch.parameters));
    all.push_back(
        {i,
         fmt::format("{} {} {} {} {} {} {}", launch.grid[0], launch.grid[1], launch.grid[2],
                     launch.block[0], launch.block[1], launch.block[2], launch.shared),
         std::to_string(fingerprint_of(inputs))});
  }
  return all;
}

}  // namespace cudabpf::replay
