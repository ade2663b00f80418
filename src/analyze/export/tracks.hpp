// A trace as a picture over time: tracks of processes, threads, streams and the driver, calls on
// them, arrows from a call to its driver operations, and counters. A TrackWriter decides how to
// write it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/circumstances/processes.hpp"
#include "analyze/circumstances/streams.hpp"
#include "analyze/export/nested_calls.hpp"
#include "analyze/memory/traced_memory.hpp"

namespace cudabpf::analyze {

struct Track {
  enum class Kind : std::uint8_t { process, thread, driver, stream, machine, counter };

  std::uint32_t id = 0;      // unique, from 1; 0: not announced yet
  std::uint32_t parent = 0;  // the track that it is part of; 0: none
  Kind kind = Kind::machine;
  std::uint32_t pid = 0, tid = 0;  // of a process, of a thread; else 0
  std::uint32_t process = 0;       // the pid, changed if the same one came before; 0: machine
  bool bytes = false;              // a counter's unit
  std::string name;
};

class TrackWriter {
 public:
  // What is on a track: a span of time, a span without an end, or a point in time.
  enum class Shape : std::uint8_t { slice, endless, instant };
  // Arrows from a call to its driver operations. Both ends of one have the same number.
  struct Flows {
    std::span<const std::uint64_t> begin = {};  // those that begin at a call
    std::uint64_t end = 0;                      // the one that ends here; 0: none
    const Track* caller = nullptr;              // the track that this one begins on
  };
  using Facts = std::initializer_list<std::pair<std::string_view, std::string>>;

  virtual ~TrackWriter() = default;
  virtual void start(const TraceClocks& clocks) = 0;
  // Comes before anything on the track.
  virtual void track(const Track& track) = 0;
  virtual void begin(const Track& track, const Line& line, Shape shape, const Flows& flows) = 0;
  virtual void end(const Track& track, const Line& line) = 0;  // only of a slice
  // Work that a call has put into a stream. The trace does not say when it ran.
  virtual void enqueued(const Track& stream, const Line& call) = 0;
  virtual void counter(const Track& counter, std::uint64_t ts, std::uint64_t value) = 0;
  // Something that concerns the whole picture.
  virtual void note(const Track& track, std::uint64_t ts, std::string_view name, Facts facts) = 0;
  virtual void finish(const TraceFacts& facts) = 0;
};

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
  struct Process {
    Track track;
    std::unordered_map<std::uint32_t, Thread> threads;
    std::unordered_map<StreamKey, Track, StreamHash> streams;
    std::array<Counter, MEMORY_KINDS> memory;
    Counter launches;
    std::uint64_t counted = 0, counted_from = 0;  // launches since then
  };

  void follow(const Line& line);
  void begin_part();
  void call(const Line& line);
  void driver(const Line& line);
  void interrupt(const Line& line);
  void gpu_error(const Line& line);
  void lost(const Line& line);
  void named(std::uint32_t pid);

  void give_nested(Thread& thread);
  void enqueued(Process& process, const Line& call);
  void launched(Process& process, std::uint64_t ts);
  void count_launches(Process& process, std::uint64_t now);

  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended) override;
  void freed_unknown(const MemoryCall&) override {}
  void set_memory(const LiveMemory::Block& block, std::uint64_t ts, bool more);
  void set(Counter& counter, std::uint64_t ts, std::uint64_t value);
  void write(Counter& counter);

  Process& process(std::uint32_t pid);
  Thread& thread(Process& process, std::uint32_t tid);
  void close(Process& process);
  void forget(std::uint32_t pid);
  void begin_anew(std::uint64_t ts);
  void missing(std::uint64_t ts, std::string_view what, std::string_view fact, std::string how);
  void announce(Track& track, Track::Kind kind, const Process* process, const Track* parent,
                std::string name);
  Track& machine_track(const std::string& name);
  std::string process_name(std::uint32_t pid) const;

  Names& names_;
  std::vector<TrackWriter*> writers_;
  Part part_;
  bool in_part_;  // counters show what is held; before the part, it is only followed
  TracedMemory memory_;
  std::unordered_map<std::uint32_t, Process> processes_;
  Process* last_process_ = nullptr;
  const analyze::Process* of_line_ = nullptr;
  std::unordered_map<std::uint32_t, std::uint32_t> again_;  // how often a pid was used before
  std::map<std::string, Track> machine_;                    // by name
  std::uint32_t tracks_ = 0;
  std::uint64_t flows_ = 0, flows_left_out_ = 0;
  std::size_t kept_ = 0;        // processes, threads and streams
  std::size_t flows_kept_ = 0;  // of all threads
  std::size_t held_ = 0;        // nested calls, of all threads
  bool begun_ = false;
};

}  // namespace cudabpf::analyze
