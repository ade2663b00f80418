// The events of a report's timeline: each by itself, as long as a browser can hold them. Where
// there are more, short ones that began close together become one, which says how many it stands
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabpf::analyze {

struct ReportEvent {
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint64_t id = 0;              // of the call; of work and operations, the call behind them
  std::uint64_t busy = 0;            // ns, the sum of the durations of those that it stands for
  std::uint64_t longest = 0;         // ns, of the one that `kind` is of
  std::uint32_t kind = 0, details = 0, stream = 0;
  std::uint32_t count = 1;

  std::uint64_t time() const { return end - begin; }
  void absorb(const ReportEvent& next);
};

// Those that follow one another in a row.
class ReportLane {
 public:
  const std::vector<ReportEvent>& events() const { return events_; }
  std::vector<ReportEvent>& events() { return events_; }
  // False: it became part of the last one.
  bool add(const ReportEvent& event, unsigned resolution);
  void sort();
  void merge(unsigned resolution);

 private:
  // Whether two are so short, and so close together, that they may be drawn as one.
  static bool are_one(const ReportEvent& a, const ReportEvent& b, unsigned resolution);

  std::vector<ReportEvent> events_;
};

// Keeps the number of events of all lanes within bounds.
class ReportEvents {
 public:
  static constexpr std::size_t MOST = std::size_t{3} << 19;

  explicit ReportEvents(std::size_t most = MOST) : most_(most) {}

  // each_lane(f) calls f with every lane.
  template <typename EachLane>
  void add(ReportLane& lane, const ReportEvent& event, EachLane&& each_lane) {
    if (lane.add(event, resolution_)) count_++;
    if (count_ <= most_) return;
    do {  // merging takes time, so it is to make room for some while
      resolution_ = resolution_ ? resolution_ + 1 : FINEST;
      count_ = 0;
      each_lane([&](ReportLane& each) {
        each.merge(resolution_);
        count_ += each.events().size();
      });
    } while (count_ > most_ / 4 * 3 && resolution_ < COARSEST);
  }
  // Short events that began in the same 2^this ns are one; 0: none are.
  unsigned resolution() const { return resolution_; }

 private:
  static constexpr unsigned FINEST = 8, COARSEST = 63;

  std::size_t most_, count_ = 0;
  unsigned resolution_ = 0;
};

}  // namespace cudabpf::analyze
