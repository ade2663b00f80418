// What a trace has measured of GPUs: how long kernels, copies, fills and launches of graphs took
// there, and how long each waited until it began.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/issuing_calls.hpp"
#include "util/durations.hpp"

namespace cudabpf::analyze {

// GPU operations that are counted together.
struct OperationFigures {
  Durations times;   // on the GPU
  Durations queued;  // from the issuing call's beginning to that on the GPU
  std::uint64_t bytes = 0;

  void add(const OperationFigures& other);
};

class MeasuredOperations : public Analysis {
 public:
  struct OfDirection {
    std::string name;  // "HtoD", "fill"
    bool fills = false;
    OperationFigures figures;

    void add(const OfDirection& other) { figures.add(other.figures); }
  };

  explicit MeasuredOperations(Names& names);

  // It learns nothing about kernels by this: see kernel().
  void line(const Line& line) override { line_of(line, true); }
  void outside(const Line& line) override { line_of(line, false); }
  void finish(const TraceFacts&) override;

  // Adds a kernel's line, whose figures these are.
  void kernel(const Line& line, OperationFigures& figures);

  bool measured() const { return measured_; }      // a GPU's work has a line
  bool was_wanted() const { return was_wanted_; }  // it was recorded with --gpu
  bool whole_graphs() const { return whole_graphs_; }
  const OperationFigures& kernels() const { return kernels_; }            // all of them
  const OperationFigures& graph_launches() const { return all_graphs_; }  // all of them
  // Null: no launch of it was measured. For a null graph: launches of unknown contents.
  const OperationFigures* graph(const LaunchedGraph* graph) const;
  std::vector<OfDirection> copies() const;  // and fills; the longest total first

 private:
  // At most this many directions are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_DIRECTIONS = 64;

  // A launch of a graph, until all that it did is known.
  struct GraphRun {
    static constexpr std::size_t MAX = IssuingCall::MAX;

    std::uint64_t id = 0, ts = 0;  // the call's
    // What its work did on the GPU so far; `begin` > `end`: nothing.
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
    std::uint32_t place = 0;
    bool wanted = true;  // it lies in the part of the trace that is wanted
  };

  void line_of(const Line& line, bool wanted);
  void did(const Line& line, bool wanted);
  void copied(const Line& line);
  void settle(const GraphRun& run);
  void add_graph(std::uint32_t place, std::uint64_t time);
  std::uint32_t place_of_graph(const LaunchedGraph* graph);

  Names& names_;
  Name fills_, others_;
  bool was_wanted_ = false;  // the trace has, or may have, lines of what GPUs did
  bool measured_ = false, whole_graphs_ = false;
  CallsById<GraphRun> runs_;
  OperationFigures kernels_, all_graphs_;
  std::vector<OperationFigures> graphs_;
  std::unordered_map<const LaunchedGraph*, std::uint32_t> places_of_graphs_;
  std::unordered_map<std::uint32_t, OperationFigures> copies_;  // by the name of the direction
};

Json measured_operations_json(const MeasuredOperations& operations);
void add_copies(Page& page, const MeasuredOperations& operations);
void add_queue_note(Page& page, const MeasuredOperations& operations);

}  // namespace cudabpf::analyze
