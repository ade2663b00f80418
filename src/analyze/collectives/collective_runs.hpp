// What collectives did on GPUs: each call, or each group of calls, with its kernels and copies.
//
// A kernel's launch names the call that made it (`within`): the collective, or the ncclGroupEnd
// that launched a group's. What was launched together stays together: the time of n collectives
// that ran as m kernels is not divided among them. Captured collectives run at each launch of their
// graph. Communicators that do not block launch on a thread of their own: their kernels belong to
// the calls of the same stream in order, if there are as many of both.
//
// Lines of GPU operations come late and in any order, so they are kept until the end or until there
// are too many; then the earlier half is settled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/collectives/communicators.hpp"
#include "analyze/collectives/hidden_time.hpp"
#include "analyze/gaps/busy.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

struct CollectiveCall {
  std::uint64_t id = 0;
  std::uint64_t communicator = 0;  // 0: not known
  std::uint64_t seq = 0;           // 0: not known
  std::uint64_t group = 0;         // 0: it was queued in none
  std::uint64_t size = 0, count = 0;
  std::uint64_t ts = 0, end = 0;  // `end` == `ts`: it did not return, or not to our knowledge
  std::uint64_t stream = 0;
  std::int64_t device = -1;  // -1: not known
  std::int64_t root = -1, peer = -1;
  Name op, datatype, reduction;
};

// What one call or one group did on a GPU.
struct OnGpu {
  std::uint64_t stream = 0;
  std::int64_t device = -1;
  std::uint64_t operations = 0;      // kernels, and copies of copy engines; 0: none is known
  std::uint64_t begin = 0, end = 0;  // of the first, of the last
  std::uint64_t time = 0;            // in which any of them ran
  std::uint64_t hidden = 0;          // of it, in which the GPU also did something else

  // In the order of their beginnings. What the one before it has covered counts once.
  void add(std::uint64_t op_begin, std::uint64_t op_end);
  void add(const OnGpu& other);
};

struct CollectiveRun {
  std::vector<CollectiveCall> calls;  // several: they ran together
  std::uint64_t process = 0;          // its number
  std::uint32_t pid = 0;
  std::uint64_t launch = 0;  // of their graph, the how-manieth, from 1; 0: they were not captured
  std::uint64_t ts = 0, end = 0;  // on the host: of the calls and the group's end, or of the launch
  bool wanted = true;             // as their lines are
  OnGpu gpu;

  bool measured() const { return gpu.operations; }
  // By the ranks of its communicator alike.
  bool is_counted() const;
  // No rank's kernel ends before every other rank has come.
  bool is_barrier() const;
  // The one communicator of all its calls; 0: there are several, or it is not known.
  std::uint64_t communicator() const;
};

class CollectiveRuns : public Analysis {
 public:
  using Take = std::function<void(const CollectiveRun&)>;
  struct Bounds {
    std::size_t operations = 1 << 18;  // of GPUs, kept at once
    std::size_t runs = 1 << 18;        // whose kernels may still come
    std::size_t calls = 1 << 19;       // in these
    std::uint64_t launched = 1 << 25;  // runs of captured calls, in all
    std::size_t captured = 1 << 17, kernels_of_graphs = 1 << 20, orphans = 1 << 16, gpus = 256;
  };
  // What is known, and what is not.
  struct Books {
    std::uint64_t failed = 0;                       // calls
    std::uint64_t captured = 0;                     // calls, which ran at launches only
    std::uint64_t without_kernel = 0;               // runs
    std::uint64_t unjoined = 0, unjoined_time = 0;  // kernels of collectives without their call
    std::uint64_t late = 0;      // operations of which it is not known what ran meanwhile
    std::uint64_t left_out = 0;  // captured calls, and operations of GPUs, beyond the bounds
  };
  // What a process's GPU did: each is the time in which anything of its kind ran.
  struct OfGpu {
    std::uint32_t pid = 0;
    std::int64_t device = 0;
    Union work, collectives, all;

    std::uint64_t hidden() const { return work.total() + collectives.total() - all.total(); }
    std::uint64_t exposed() const { return collectives.total() - hidden(); }
  };

  // Passes each run of the part to `take`, those of a communicator in the order of their calls.
  CollectiveRuns(const Names& names, Part part, Take take, Bounds bounds);
  CollectiveRuns(const Names& names, Part part, Take take)
      : CollectiveRuns(names, part, std::move(take), Bounds()) {}

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts&) override;

  const Communicators& communicators() const { return communicators_; }
  const Books& books() const { return books_; }
  bool measured() const { return measured_; }  // the trace has GPUs' own times
  std::vector<const OfGpu*> gpus() const;      // those with collectives

 private:
  // What a call, a group or a launch of a graph asked for.
  struct Asked {
    std::vector<CollectiveCall> calls;
    const LaunchedGraph* graph = nullptr;  // null: it is none
    std::uint64_t process = 0, launch = 0, ts = 0, end = 0;
    std::uint32_t pid = 0;
    bool several = false;        // communicators
    bool wanted = true;          // as the line of the call or the launch is
    std::vector<OnGpu> on_gpus;  // one; of several communicators: by stream; of a graph: by kernel
    std::uint64_t covered = 0;   // the end of all of a graph's kernels so far
  };
  // Whose operation it is: of `on_gpus` of what was asked for by `id`, or of the orphans.
  struct Owner {
    std::uint64_t id = 0;
    std::size_t index = 0;
    bool orphan = false;
  };
  enum class Does : std::uint8_t { work, a_collective, perhaps };
  struct Kept {
    std::uint64_t begin = 0, end = 0, stream = 0;
    std::uint64_t by = 0;  // the call that may be a collective, or that launched the graph; 0: none
    std::uint32_t gpu = 0, pid = 0;
    Does does = Does::work;  // perhaps: if `by` is a collective
  };
  struct Gpu {
    OfGpu figures;
    HiddenTime<Owner> hidden;
  };
  struct Orphan {
    std::uint32_t pid = 0;
    OnGpu gpu;
  };

  void call(const Line& line);
  void collective(const Line& line);
  void launch(const Line& line);
  void operation(const Line& line);
  bool is_of_collective(Name kernel);
  Asked& ask(std::uint64_t id, const Line& line);
  Asked* asked_by(std::uint64_t call, std::uint64_t& id);
  void settle(std::size_t count);
  void settle(const Kept& kept);
  void settle_collective(const Kept& kept, Asked* asked, std::uint64_t id);
  OnGpu& place_of(const Kept& kept, Asked& asked, std::size_t& index);
  void hide(const Owner& owner, std::uint64_t ns);
  void join_orphans();
  void finish_first();
  void finish(Asked& asked);
  void finish_launch(Asked& asked);
  static CollectiveRun empty_run(const Asked& asked);
  void not_joined(const OnGpu& gpu);
  void pass_on(const CollectiveRun& run);

  const Names& names_;
  Part part_;
  Take take_;
  Bounds bounds_;
  Communicators communicators_;
  Books books_;
  bool measured_ = false;
  std::map<std::uint64_t, Asked> asked_;           // by the id of the call, or of a group's first
  std::map<std::uint64_t, std::uint64_t> groups_;  // the first call of each
  std::map<std::uint64_t, std::uint64_t> stands_for_;  // calls that are part of another, and which
  HashMap<std::uint64_t, CollectiveCall> captured_;    // by id
  HashMap<std::uint64_t, std::uint64_t> launches_;     // of each graph, by its number
  std::vector<Kept> kept_;
  std::uint64_t settled_until_ = 0;
  std::vector<Gpu> gpus_;
  std::map<std::tuple<std::uint32_t, std::int64_t>, std::uint32_t> gpu_of_;
  std::vector<Orphan> orphans_;
  std::size_t asked_calls_ = 0, kernels_of_graphs_ = 0;
  std::uint64_t launched_ = 0;
  enum class Known : char { no, other, collective };
  std::vector<Known> kernels_;  // by the name's number
};

}  // namespace cudabpf::analyze
