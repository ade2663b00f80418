#include "merge/meetings.hpp"

#include <algorithm>

#include "analyze/collectives/collective_runs.hpp"

namespace cudabpf::merge {

namespace {

// Those of one trace, each time some are left out twice as far apart.
class Kept {
 public:
  explicit Kept(std::size_t at_most) : at_most_(at_most) {}

  void add(const Meeting& meeting) {
    if (!is_wanted(meeting)) return;
    all_.push_back(meeting);
    while (all_.size() > at_most_ && apart_ < LARGEST) {
      apart_ *= 2;
      std::erase_if(all_, [this](const Meeting& one) { return !is_wanted(one); });
    }
  }
  std::vector<Meeting> take() {
    std::ranges::stable_sort(all_, {}, &Meeting::key);
    return std::move(all_);
  }

 private:
  static constexpr std::uint64_t LARGEST = std::uint64_t{1} << 62;
  // A graph's collectives keep their numbers at each of its launches.
  bool is_wanted(const Meeting& one) const { return (one.key.seq + one.key.launch) % apart_ == 0; }

  std::size_t at_most_;
  std::uint64_t apart_ = 1;
  std::vector<Meeting> all_;
};

}  // namespace

Result<std::vector<Meeting>> meetings_of(const Surveyed& trace, std::size_t at_most) {
  std::uint64_t up = trace.times().at_begin.monotonic;
  constexpr std::uint64_t LARGEST_ERROR = 1'000'000'000;
  if (!up || up > Meeting::LATEST || !trace.facts.end || !trace.facts.end->gpu_operations)
    return std::vector<Meeting>{};
  std::uint64_t error = trace.facts.end->gpu_operations->clock_error_ns;
  if (error > LARGEST_ERROR) return std::vector<Meeting>{};
  auto reader = TRY(analyze::TraceReader::open(trace.files));
  Kept kept(at_most);
  const analyze::Communicators* communicators = nullptr;
  analyze::CollectiveRuns runs(reader->names(), {}, [&](const analyze::CollectiveRun& run) {
    const analyze::TracedCommunicator* one = communicators->find(run.communicator());
    if (!one || !one->is_counted_from_first() || !run.is_counted() || !run.is_barrier() ||
        !run.measured() || run.gpu.end > Meeting::LATEST - up)
      return;
    std::uint64_t begin = up + run.gpu.begin;
    kept.add({{*one->identity, run.calls.front().seq, run.launch},
              begin - std::min(begin, error),
              up + run.gpu.end + error});
  });
  communicators = &runs.communicators();
  while (const analyze::Line* line = TRY(reader->next())) runs.line(*line);
  runs.finish(reader->facts());
  return kept.take();
}

}  // namespace cudabpf::merge
