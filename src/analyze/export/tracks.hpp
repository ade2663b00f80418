// A trace as a picture over time: tracks of processes, threads, streams, the driver and GPUs, what
// was done on them, arrows from a call to its driver operations and to its stream or to what a GPU
// did because of it, phases, iterations and counters. A TrackWriter decides how to write it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/processes.hpp"
#include "analyze/derived/streams.hpp"
#include "analyze/export/held_tracks.hpp"
#include "analyze/export/nested_calls.hpp"
#include "analyze/export/operations_in_order.hpp"
#include "analyze/export/track_writer.hpp"
#include "analyze/gaps/idle.hpp"
#include "analyze/iterations/thread_work.hpp"
#include "analyze/lanes/gpu_queues.hpp"
#include "analyze/memory/blocks.hpp"
#include "analyze/memory/traced_memory.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Tracks : public Analysis, private LiveMemory::Listener {
 public:
  Tracks(Names& names, std::vector<TrackWriter*> writers, Part part = {});

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

 private:
  // Launches are counted over this long; the counter shows launches per second.
  static constexpr std::uint64_t COUNTED_NS = 10'000'000;
  static constexpr std::uint64_t SECOND_NS = 1'000'000'000;
  // Limits on what a trace may have any number of.
  static constexpr std::size_t MAX_HELD = 1 << 14;    // nested calls
  static constexpr std::size_t MAX_FLOWS = 1 << 16;   // that have begun; further ones get no arrow
  static constexpr std::size_t MAX_TRACKS = 1 << 16;  // beyond that, all tracks start over
  static constexpr std::size_t MAX_LANES = 64;        // of a queue
  static constexpr std::size_t MAX_ANSWERED = 1 << 12;  // calls whose arrow has ended

  struct Counter {
    Track track;
    std::uint64_t ts = 0, value = 0;  // of what is written next, once ts changes
    bool changed = false;
  };
  struct Flow {
    std::uint64_t call = 0, id = 0;
  };
  struct Thread {
    Track track, driver;
    NestedCalls nested;
    std::vector<Flow> flows;  // from calls whose lines have not come yet
  };
  // What overlaps is on another track: on one, slices only nest.
  struct Lane {
    Track track;
    std::uint64_t end = 0;  // of the last slice
  };
  struct Process {
    Track track;
    std::map<std::uint32_t, Thread> threads;
    HashMap<StreamKey, Track, StreamHash> streams;
    // By thread (0: they may end on any) and by how many are around them.
    std::map<std::pair<std::uint32_t, std::size_t>, std::vector<Lane>> ranges;
    std::vector<Lane> windows;  // in which GPU times were recorded, where they were not always
    std::array<Counter, MEMORY_KINDS> memory;
    std::map<std::int64_t, Counter> blocks;  // of PyTorch's allocator, by GPU
    Counter launches;
    std::uint64_t counted = 0, counted_from = 0;  // launches since then
  };

  struct Queue {
    std::string handle;  // by which calls name it; empty: not known yet
    std::vector<Lane> lanes;
  };
  // The collectives of one rank's communicator, as the process called them.
  struct Communicator {
    std::string name;
    std::vector<Lane> lanes;
  };
  // What a process did on GPUs. Its lines may come after the process is gone.
  struct OnGpus {
    Track process;
    std::map<std::int64_t, Track> gpus;
    std::map<QueueKey, Queue> queues;
    std::size_t kept = 1;  // tracks
  };

  void follow(const Line& line);
  void begin_part();
  void call(const Line& line);
  void driver(const Line& line);
  void interrupt(const Line& line);
  void gpu_error(const Line& line);
  void gpu_sample(const Line& line);
  void draw_residents(const GpuSample& sample);
  std::string on_host(const Line& line) const;  // " on node2", where there are several
  void communicator(const Line& line);
  void collective(Process& process, const Line& line);
  void range(const Line& line);
  // The first that the line does not overlap, if need be a new one, which is below this track;
  // name_of() names it, after how many others. Null: there are too many.
  template <typename NameOf>
  Lane* free_lane(std::vector<Lane>& lanes, const Line& line, Track::Kind kind,
                  const Process& process, const Track& below, NameOf&& name_of) {
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const Lane& one) { return one.end <= line.ts; });
    if (lane == lanes.end()) {
      if (lanes.size() == MAX_LANES) {
        operations_left_out_++;
        return nullptr;
      }
      lane = lanes.insert(lane, Lane{});
      announce(lane->track, kind, &process.track, &below, name_of(lanes.size() - 1));
      kept_++;
    }
    lane->end = line.end();
    return &*lane;
  }
  void lost(const Line& line);
  void gpu_times(const Line& line);
  void gpu_operation(const Line& line);
  void gpu_window(const Line& line);
  void draw_operations();
  void draw_work(Line& work);
  Lane* lane_for(const Line& work);
  void learn_stream(Queue& queue, const QueueKey& key, const Line& work);
  OnGpus& on_gpus(std::uint32_t pid);
  void keep_for_operations(std::uint32_t pid, const Track& process);
  void forget_operations(std::uint32_t pid);
  bool is_first_of(std::uint64_t call);
  void named(std::uint32_t pid);

  void give_nested(Thread& thread);
  void begin(Thread& thread, const Line& line, const TrackWriter::Flows& flows);
  void end(Thread& thread, const Line& line);
  void enqueued(Process& process, const Line& call, std::uint64_t flow);
  void draw_execution(const TraceFacts& facts);
  void launched(Process& process, std::uint64_t ts);
  void count_launches(Process& process, std::uint64_t now);

  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended) override;
  void freed_unknown(const MemoryCall&) override {}
  void set_memory(const LiveMemory::Block& block, std::uint64_t ts, bool more);
  void blocks(const Line& line);
  void set_blocks(const Blocks::Allocator& allocator, std::uint64_t ts, std::uint64_t bytes);
  void set(Counter& counter, std::uint64_t ts, std::uint64_t value);
  void write(Counter& counter);

  std::uint32_t number_for(std::uint32_t pid);
  Process& process(std::uint32_t pid);
  Thread& thread(Process& process, std::uint32_t tid);
  void close(Process& process);
  void forget(std::uint32_t pid);
  void begin_anew(std::uint64_t ts);
  void missing(std::uint64_t ts, std::string_view what, const char* fact, std::string how);
  void announce(Track& track, Track::Kind kind, const Track* process, const Track* parent,
                std::string name);
  Track& machine_track(const std::string& name, Track::Kind kind = Track::Kind::machine,
                       bool bytes = false);
  std::string process_name(std::uint32_t pid) const;

  Names& names_;
  HeldTracks out_;
  Part part_;
  bool in_part_;  // counters show what is held; before the part, it is only followed
  Idle idle_;     // is shown nothing: a picture has no idle times
  ThreadsAtWork at_work_;
  TracedMemory memory_;
  Blocks blocks_;
  std::map<std::uint32_t, Process> processes_;
  Process* last_process_ = nullptr;
  const analyze::Process* of_line_ = nullptr;
  HashSet<std::uint32_t> numbers_;                             // of processes that have tracks
  std::unordered_map<std::uint64_t, Track> by_number_;         // processes, the gone ones too
  std::map<std::string, Track> machine_;                       // by name
  std::map<std::uint32_t, std::set<std::uint32_t>> resident_;  // by GPU: pids that had it last
  std::uint32_t tracks_ = 0;
  std::uint64_t flows_ = 0, flows_left_out_ = 0;
  std::size_t kept_ = 0;        // processes, threads and streams
  std::size_t flows_kept_ = 0;  // of all threads
  std::size_t held_ = 0;        // nested calls, of all threads

  bool gpu_operations_ = false;        // the trace has what GPUs did
  HashSet<std::uint32_t> unmeasured_;  // pids without GPU times
  OperationsInOrder operations_;
  std::map<std::uint32_t, OnGpus> on_gpus_;              // by pid
  std::map<std::uint64_t, Communicator> communicators_;  // by number
  HashSet<std::uint64_t> answered_;
  std::deque<std::uint64_t> answered_order_;
  std::uint64_t operations_left_out_ = 0;

  bool begun_ = false;
};

}  // namespace cudabpf::analyze
