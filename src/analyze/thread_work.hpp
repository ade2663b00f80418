// What each thread asked of the GPU, cut into segments: from one wait for the GPU to the next.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/work.hpp"

namespace cudabpf::analyze {

// Of a thread up to some moment; times in ns, of calls that were not made inside others.
struct Spent {
  std::uint64_t calls = 0;
  std::uint64_t in_calls = 0;  // all of them
  std::uint64_t module = 0, to_device = 0, to_host = 0, waiting = 0;

  Spent operator-(const Spent& before) const;
};

struct Moment {
  std::uint64_t ts = 0;
  Spent spent;  // until then
};

// One in which something was launched.
struct Segment {
  Moment begin;  // its first launch
  Moment end;    // of the wait that ends it, or of its last call
  std::uint32_t launches = 0;
  Name first, last;  // kernels
};

struct Launch {
  Moment at;
  Name kernel;
};

struct ThreadWork {
  std::uint32_t pid = 0, tid = 0;
  Name comm;                        // of the process, if it is known
  std::uint64_t process_began = 0;  // 0: before the trace
  std::uint64_t process_ended = 0;  // 0: after it
  std::uint64_t first_call = 0, last_end = 0;
  Moment set_up;  // when the first call came that is no setup; ts 0: none did
  Spent all;
  std::uint64_t launches = 0;
  std::vector<Segment> segments;
  bool segments_left_out = false;
  // When large copies to the device ended: of a row without a launch between, the last.
  std::vector<Moment> large_copies;
  // Of the segment with the most launches, the last of them.
  std::vector<Launch> longest;
  std::size_t longest_segment = 0;
  std::uint32_t longest_launches = 0;
};

class ThreadsAtWork : public Analysis {
 public:
  // A copy to the device that is this large brings weights.
  static constexpr std::uint64_t LARGE = std::uint64_t{64} << 10;
  static constexpr std::size_t MAX_SEGMENTS = 1 << 20;  // of all threads: 128 MB

  explicit ThreadsAtWork(Names& names)
      : work_of_(names), fork_(names.add("fork")), exit_(names.add("exit")) {}

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  const std::vector<ThreadWork>& threads() const { return done_; }  // the busiest first

 private:
  static constexpr std::size_t MAX_COPIES = 1 << 12;
  static constexpr std::size_t MAX_LAUNCHES = 1 << 15;  // that are kept of a segment
  static constexpr std::size_t MAX_SEQUENCES = 16;      // threads of which they are

  struct Open {
    ThreadWork work;
    Segment segment;
    bool copied_since_launch = false;
    bool keeps_launches = false;
    std::vector<Launch> launches;
  };

  Open& thread(const Line& line);
  void process(const Line& line);
  void copied(const Line& line, Open& open);
  void launched(const Line& line, Open& open);
  void close_segment(Open& open);
  void close(Open& open, std::uint64_t process_ended);

  WorkOf work_of_;
  Name fork_, exit_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Open> open_;  // by process and thread
  struct Known {                                                  // of a process
    std::uint64_t began;
    Name comm;
  };
  std::unordered_map<std::uint32_t, Known> known_;
  std::pair<std::uint32_t, std::uint32_t> last_key_;
  Open* last_ = nullptr;
  std::size_t segments_ = 0, sequences_ = 0;
  std::vector<ThreadWork> done_;
};

}  // namespace cudabpf::analyze
