// The ranges by which programs say what they do: which are open on each thread, so that each call
// is known to be in its innermost one, and how long each took.
//
// A range that is pushed says how many of its domain are around it on its thread. So where records
// are missing, the next one shows which ranges are over, and those that are still open stay so.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/learner.hpp"
#include "correlate/calls/open_trace.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/record.hpp"
#include "util/hash.hpp"

namespace cudabpf {

class Ranges : public Learner {
 public:
  Ranges(OpenTrace& trace, Bounds& bounds) : trace_(trace), bounds_(bounds) {}

  void on_record(const Record& record);
  void began(ThreadId thread, Frame& frame) {
    if (!processes_.empty()) frame.range = innermost(thread);
  }
  void thread_gone(ThreadId thread);
  void process_gone(std::uint32_t pid);
  void finished();

 private:
  using Path = std::shared_ptr<const RangePath>;
  using Op = NamedRange::Op;
  // Open at once: on a thread, and of those that a process has started.
  static constexpr std::size_t MAX_PUSHED = 256, MAX_STARTED = 4096;
  enum class Ending : std::uint8_t { ended, end_lost, unfinished };

  struct Open {
    NamedRange range;
    std::uint64_t at = 0;      // CLOCK_MONOTONIC
    std::uint64_t number = 0;  // of one that was started
    std::uint32_t domain = 0, level = 0, drops = 0;
  };
  struct OfProcess {
    std::map<std::uint32_t, std::vector<Open>> pushed;  // by thread, the innermost last
    std::vector<Open> started;                          // the latest last
    std::map<std::uint32_t, std::string> domains;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> categories;  // of a domain
  };
  struct Place {
    std::uint64_t around = 0;  // the number of the path around it
    std::string name, domain;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      return hash_of(place.around, hash_of(place.name), hash_of(place.domain));
    }
  };

  Path innermost(ThreadId thread) const;
  void push(const Record& record, OfProcess& process);
  void pop(const Record& record, OfProcess& process);
  void end(const Record& record, OfProcess& process);
  void name_category(const Record& record, OfProcess& process);
  // Whether there is room for one more that is open, besides these.
  bool has_room(const std::vector<Open>& opens, std::size_t most);
  Open opened(const Record& record, const OfProcess& process, Op op);
  Path path_for(const NamedRange& range, Path around);
  bool make_room_for_path();
  // The ranges of this domain that are not around one of this level are over, unseen.
  void close_from(std::vector<Open>& pushed, std::uint32_t domain, std::uint32_t level);
  void close(Open& open, Ending ending, std::uint64_t at = 0);
  void close_all(std::vector<Open>& opens);

  OpenTrace& trace_;
  Bounds& bounds_;
  HashMap<std::uint32_t, OfProcess> processes_;
  std::unordered_map<Place, Path, PlaceHash> paths_;
  std::size_t open_ = 0;  // ranges, of all processes
  std::uint64_t next_path_ = 1;
  std::size_t refused_ = 0;  // names, since room was made last
};

}  // namespace cudabpf
