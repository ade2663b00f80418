// Runs a kernel's occurrences in any order, with poison where it writes, and compares what each
// leaves with what it should. What is asked for may have another code in the kernel's place.
#pragma once

#include <string>
#include <vector>

#include "replay/gpu/bench.hpp"
#include "replay/messages.hpp"
#include "replay/trial/occurrences.hpp"
#include "replay/worker/memory_view.hpp"

namespace cudabpf::replay {

class Attempts {
 public:
  Attempts(const Driver& driver, Progress& progress, Bench& bench)
      : driver_(&driver),
        progress_(&progress),
        bench_(&bench),
        view_(driver, progress, bench.memory(), bench.code()) {}

  // By occurrence: what it writes without reading it, as runs with poison there show. `where`: only
  // what of it is in this memory.
  Result<std::vector<Poisoned>> poison(const std::vector<Range>& where);
  // `request.launches`: the occurrences, in the order in which they are run.
  Result<> attempt(const Request& request, Answer& answer);

 private:
  using Left = std::vector<std::string>;  // by part of what comes out

  Result<> find_occurrences();
  // What it leaves if these ranges hold nothing but this byte before it.
  Result<Left> left_by(const Occurrence& occurrence, const std::vector<Range>& poisoned,
                       char poison);
  Result<bool> is_as_expected(const Occurrence& occurrence, const std::vector<Range>& poisoned);
  Result<Poisoned> poison(const Occurrence& occurrence, const std::vector<Range>& where);
  // Adds to `written` what is written whatever is in `poisoned`, which is all in these granules.
  // Returns the granules of which that cannot be said.
  Result<std::vector<Range>> sort_out(const Occurrence& occurrence,
                                      const std::vector<Range>& poisoned,
                                      std::vector<Range>& written);
  void compare(const Occurrence& occurrence, const Left& left, const std::vector<Range>& poisoned,
               char poison, Attempted& sums) const;

  // Adds what is not as it was given, though nothing is to write it.
  Result<> find_touched(const Occurrence& occurrence, Attempted& sums);

  std::string_view bytes(const bundle::Extent& extent) const {
    return bench_->player().data().substr(extent.offset, extent.size);
  }

  const Driver* driver_;
  Progress* progress_;
  Bench* bench_;
  MemoryView view_;
  std::vector<Occurrence> occurrences_;
};

}  // namespace cudabpf::replay
