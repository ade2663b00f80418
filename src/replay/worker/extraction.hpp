// Some launches of a tape, taken into a capture folder of their own, which has only the memory that
// they need: before each launch, all that any of them changes and all that is not the same for all
// of them is copied to the GPU; after it, what it changed is copied to the host, where the folder
// has what is expected. So they can be run in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/export/pointers.hpp"
#include "replay/gpu/bench.hpp"
#include "replay/messages.hpp"
#include "replay/worker/memory_view.hpp"

namespace cudabpf::replay {

class Extraction {
 public:
  using PlayUpTo = std::function<Result<>(std::size_t step)>;
  Extraction(const Driver& driver, Progress& progress, Bench& bench, PlayUpTo play_up_to)
      : driver_(&driver),
        progress_(&progress),
        bench_(&bench),
        view_(driver, progress, bench.memory(), bench.code()),
        play_up_to_(std::move(play_up_to)) {}

  Result<Extracted> extract(const Request& request);

 private:
  struct Taken {
    std::size_t step = 0;
    std::vector<Range> written;
    Extract said;
  };

  // First the tape is played to see what the launches change,
  Result<> survey(MemoryTaken memory);
  Result<> run(std::size_t step);
  Result<> add_needed(Taken& taken, MemoryTaken memory);
  Result<> follow(const LiveBlocks& live, std::vector<FoundPointer> pointers,
                  std::vector<bool>& is_needed) const;
  Result<> settle_regions();
  // then once more, to keep that.
  Result<> write(bundle::FolderWriter& writer);
  Result<> write_launch(bundle::FolderWriter& writer, Taken& taken);
  Result<> write_fills(bundle::FolderWriter& writer, const Taken& taken) const;
  Result<std::vector<Range>> run_again(Taken& taken, const std::vector<std::string>& before,
                                       const std::vector<std::string>& after);
  Result<> write_copy(bundle::FolderWriter& writer, const Taken& taken, const Range& range,
                      std::string_view bytes, bool is_to_host) const;
  Result<std::vector<bundle::PageRun>> write_pages(bundle::FolderWriter& writer,
                                                   const std::vector<Range>& of);
  Result<> write_variables(bundle::FolderWriter& writer, bool are_after);
  Result<> finish(bundle::FolderWriter& writer);
  Result<> take_code(bundle::FolderWriter& writer);

  void need(const bundle::Block& block);
  void need_touching(const LiveBlocks& live);
  // Variables of the launches' modules, where they are here.
  std::vector<const GpuCode::Variable*> variables() const;
  std::vector<Range> block_ranges() const;
  const bundle::Launch& launch_at(std::size_t step) const {
    return *bench_->tape().steps()[step].launch;
  }

  const Driver* driver_;
  Progress* progress_;
  Bench* bench_;
  MemoryView view_;
  PlayUpTo play_up_to_;
  std::vector<Taken> taken_;
  std::map<std::uint64_t, bundle::Block> blocks_;  // that are needed
  std::vector<Range> differing_;                   // granules that are not always the same
  std::vector<Range> regions_;                     // blocks and variables
  std::vector<Range> given_;                       // what is copied to the GPU before each launch
  Manifest made_;
  std::map<std::uint32_t, std::uint32_t> modules_, kernels_;  // their numbers in the new folder
};

}  // namespace cudabpf::replay
