// Which kernels ran, in which configurations: how often, when, and how long it took from one launch
// until the next; those in graphs too, where a trace says what a launched graph holds. How long a
// kernel ran on the GPU is known where the trace has lines of that. For the whole trace, or
// separately for each of the program's ranges in which they were launched.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/range_places.hpp"
#include "analyze/derived/streams.hpp"
#include "analyze/graph_launches.hpp"
#include "analyze/questions/measured_operations.hpp"
#include "analyze/short_names.hpp"
#include "state/kernel_classes.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

class Kernels : public Analysis {
 public:
  enum class By : std::uint8_t { configuration, name, range };

  // What launches that are counted together have in common.
  struct Launch {
    Name kernel;                                   // none: its name is not known
    std::uint64_t handle = 0;                      // if it has no name
    std::array<std::uint32_t, 3> grid{}, block{};  // 0: not known
    std::uint32_t shared = 0;
    const RangePlace* place = nullptr;  // where ranges are kept apart: the one it was made in
    bool operator==(const Launch&) const = default;
  };

  struct Figures {
    std::string name;       // as short as still distinguishes it from the others
    std::string_view full;  // empty: not known
    KernelClass kernel_class = KernelClass::other;
    Launch launch;
    std::uint64_t configurations = 0;
    std::uint64_t count = 0, failed = 0;  // launches
    std::uint64_t ran = 0;                // those of them that neither failed nor were captured
    std::uint64_t in_graphs = 0;          // how often it ran because a graph was launched
    std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ts
    Durations calls;                                    // of the launching calls, on the CPU
    // From a launch's return to the beginning of the next one on its stream.
    Durations gaps;
    OperationFigures gpu;  // of the runs that were measured; in graphs too, if their nodes were

    bool launched() const { return first <= last; }  // a call did, or a graph's launch
    std::uint64_t runs() const { return saturating_sum(ran, in_graphs); }
    void add(const Figures& other);
  };

  struct OfClass {
    std::string name;
    std::uint64_t kernels = 0, configurations = 0, count = 0, ran = 0, in_graphs = 0;
    Durations calls;
    OperationFigures gpu;
    std::uint64_t runs() const { return saturating_sum(ran, in_graphs); }
    void add(const OfClass& other);
  };

  struct Totals {
    std::uint64_t launches = 0, failed = 0;
    std::uint64_t unnamed = 0;
    std::uint64_t nested = 0;    // made inside other calls, and counted as part of them
    std::uint64_t captured = 0;  // while their stream was captured: they went into a graph
    std::uint64_t graphs = 0;    // launches of graphs that were not captured
    std::uint64_t failed_graphs = 0;
    std::uint64_t ran = 0;        // launches that neither failed nor were captured
    std::uint64_t in_graphs = 0;  // runs through graphs
    std::uint64_t unlisted = 0;   // those of them whose kernel the trace does not list
    std::uint64_t without_return = 0;
    std::uint64_t not_kept_apart = 0;
    std::uint64_t runs() const { return saturating_sum(ran, in_graphs); }
  };
  // A graph and its kernels, each once, however it is configured.
  struct OfGraph {
    std::string name;  // "graph 3"; empty: several
    GraphLaunches::OfGraph launched;
    std::uint64_t launches = 0, runs = 0;
    OperationFigures gpu;  // of the launches that were measured, each as a whole
    std::vector<std::pair<Name, std::uint64_t>> kernels;  // of a launch, the most frequent first
    std::vector<Name> conditional;                        // those that run any number of times
    void add(const OfGraph& other);
  };

  // Kernels of a range, and not of those inside it.
  struct Group {
    std::string name;  // "request 0 / decode"
    Figures all;
    std::vector<Figures> kernels;

    void add(Figures&& kernel);
  };

  explicit Kernels(Names& names, By by = By::configuration);

  void line(const Line& line) override;
  void outside(const Line& line) override {
    short_names_.line(line);
    gpu_.outside(line);
  }
  void finish(const TraceFacts&) override;

  // Those that took most of the GPU's time first; if that was not measured, those that ran most
  // often. By::range: as By::name, in each range.
  std::vector<Figures> figures(By by) const;
  std::vector<Group> groups() const;     // by range, in the same order
  std::vector<OfClass> classes() const;  // in the same order; only those that occurred
  const Totals& totals() const { return totals_; }
  const GraphLaunches& graph_launches() const { return graphs_; }
  const MeasuredOperations& gpu() const { return gpu_; }
  bool lacks_launches() const { return lacks_launches_; }  // not all are in the trace
  std::vector<OfGraph> graphs() const;                     // the most kernels first
  std::string short_name(Name kernel) const { return short_names_.of(kernel); }
  std::string_view full_name(Name kernel) const { return names_.text(kernel); }

 private:
  // At most this many configurations are kept apart; later ones count as one without a name.
  static constexpr std::size_t MAX_CONFIGURATIONS = std::size_t{1} << 15;
  static constexpr std::size_t MAX_STREAMS = 4096;

  struct LaunchHash {
    std::size_t operator()(const Launch& launch) const;
  };
  struct Last {
    std::size_t figures;
    std::uint64_t end;
  };

  void launch(const Line& line);
  void launch_graph(const Line& line);
  void measured(const Line& line);
  void add_graph(const GraphLaunches::OfGraph& launched, const RangePlace* place);
  void ran_in_graph(const Launch& launch, std::uint64_t runs,
                    const GraphLaunches::OfGraph& launched);
  std::size_t place_of(Launch launch, std::uint64_t count);
  void gap(const Line& line, std::size_t place);
  void forget_streams(const Line& line);
  const RangePlace* place_in(const Line& line) const {
    return by_ == By::range ? line.place : nullptr;
  }
  void name(std::vector<Figures>& all) const;

  Names& names_;
  By by_;
  Name lost_;
  std::vector<Figures> figures_;
  HashMap<Launch, std::size_t, LaunchHash> places_;
  bool lacks_launches_ = false;
  HashMap<StreamKey, Last, StreamHash> streams_;
  Totals totals_;
  GraphLaunches graphs_;
  MeasuredOperations gpu_;
  ShortNames short_names_;
};

Json kernel_json(const Kernels::Figures& figures, const Kernels& kernels);
Json kernels_json(const Kernels& kernels, Kernels::By by);
Json kernels_columns();  // of kernels, classes and graphs, for the page of `report`
void add_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most);
// The same where GPUs' work was measured.
void add_measured_kernels(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most);
void add_kernel_tables(Page& page, const Kernels& kernels, Kernels::By by, std::size_t at_most);
void add_kernel_notes(Page& page, const Kernels& kernels);
// The part of these answers that is about graphs.
Json graphs_json(const Kernels& kernels);
Json graphs_columns();
void add_graphs(Page& page, const Kernels& kernels, std::size_t at_most);
void add_graph_notes(Page& page, const Kernels& kernels);

}  // namespace cudabpf::analyze
