// What runs of the tape left, compared with what the program left: memory, variables, and what its
// copies brought to the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/compare.hpp"
#include "replay/gpu/code.hpp"
#include "replay/gpu/memory.hpp"
#include "replay/gpu/player.hpp"
#include "util/hash.hpp"

namespace cudabpf::replay {

class EndState {
 public:
  EndState(const Driver& driver, const bundle::Folder& folder, const GpuCode& code,
           GpuMemory& memory, const Player& player)
      : driver_(&driver), folder_(&folder), code_(&code), memory_(&memory), player_(&player) {}

  // After each run.
  Result<> add_run();
  // After a run that was made in another way: what it left is compared from now on. Those before
  // and after it show which values are not deterministic.
  Result<> judge();
  // What the last run left; that which is judged, if there is one.
  Result<Comparison> compare();

 private:
  // Calls `work(address, its parts that are compared, what was expected of it)` for each page.
  template <typename Work>
  Result<> for_each_page(Work work);
  Result<std::string> expected(const PageContents::Content& content);
  Result<std::string> variable(const GpuCode::Variable& variable);
  template <typename Add>
  Result<> add(Add add);
  template <typename Add>
  Result<> add_memory(Add add);
  void compare_page(const Runs& runs, std::uint64_t address, const std::vector<Range>& parts,
                    std::string_view wanted, Comparison& sums) const;
  Result<> compare_memory(Comparison& sums);
  void compare_copies(Comparison& sums) const;
  void compare_variables(Comparison& sums) const;

  const Driver* driver_;
  const bundle::Folder* folder_;
  const GpuCode* code_;
  GpuMemory* memory_;
  const Player* player_;
  bool is_first_ = true;
  HashMap<std::uint64_t, Runs> pages_;  // that are not as expected, or not in every run
  // Pages that differ, too, but that there was no room to keep: what was found in the first run.
  HashSet<std::uint64_t> not_kept_;
  Comparison of_not_kept_;
  std::vector<Runs> variables_;
  std::optional<Runs> received_;
};

}  // namespace cudabpf::replay
