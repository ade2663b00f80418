// What collectives took: by communicator, function and size.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analyze/collectives/collective_runs.hpp"
#include "util/durations.hpp"

namespace cudabpf::analyze {

class Collectives : public Analysis {
 public:
  struct Row {
    std::string name;                // "all_reduce"; of a group "recv x3, send x3"
    std::uint64_t communicator = 0;  // 0: of several, or not known
    std::uint32_t pid = 0;
    std::uint64_t size = 0;  // bytes that this rank passes
    bool several = false;    // calls that ran together
    std::uint64_t count = 0, in_graphs = 0;
    Durations gpu, host;
    std::uint64_t hidden = 0;  // ns of the time on the GPU
    // Bytes that algorithms pass on, of the runs with a time, and those that cross each link, by
    // NCCL's formulas. Nothing: they do not hold for it, or the number of ranks is not known.
    std::optional<double> algorithm_bytes, bus_bytes;

    std::uint64_t exposed() const { return gpu.total() - hidden; }
    void add(const Row& other);
  };

  explicit Collectives(Names& names, Part part = {});

  void line(const Line& line) override { runs_.line(line); }
  void outside(const Line& line) override { runs_.line(line); }
  void finish(const TraceFacts& facts) override;

  const std::vector<Row>& rows() const { return rows_; }  // those that took longest first
  const CollectiveRuns& runs() const { return runs_; }
  const Names& names() const { return names_; }

 private:
  static constexpr std::size_t MAX_ROWS = 4096;  // kept apart

  void take(const CollectiveRun& run);

  Names& names_;
  using Key = std::tuple<std::uint64_t, std::uint32_t, std::string, std::uint64_t>;
  std::map<Key, Row> by_key_;
  std::vector<Row> rows_;
  CollectiveRuns runs_;
};

// By which bytes are multiplied for the bandwidths of one collective among so many ranks.
struct BandwidthFactors {
  double algorithm = 1, bus = 1;
};
BandwidthFactors bandwidth_factors(Name op, std::uint32_t ranks);

// What ran together, in short: "all_reduce", "recv x3, send".
std::string function_of(const std::vector<CollectiveCall>& calls, const Names& names);
// "rank 1 of 4 (#7)": which of a communicator's ranks it is, and the trace's number of it.
std::string rank_text(const TracedCommunicator& communicator);

Json collectives_json(const Collectives& collectives);
void add_collectives(Page& page, const Collectives& collectives, std::size_t at_most);
// What the figures of runs do not have.
void add_run_notes(Page& page, const CollectiveRuns& runs);
Json run_books_json(const CollectiveRuns& runs);

}  // namespace cudabpf::analyze
