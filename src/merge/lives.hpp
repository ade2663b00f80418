// When each process of a trace is in it, so that none is merged with itself: what it did would be
// counted twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/read/line.hpp"
#include "trace/read/names.hpp"
#include "util/hash.hpp"

namespace cudabpf::merge {

// From its first line to its last, in its trace's time. A pid that is used again is another.
struct Life {
  std::uint32_t pid = 0;
  std::uint64_t begin = 0, end = 0;
};

class Lives {
 public:
  static constexpr std::size_t MAX = std::size_t{1} << 18;

  explicit Lives(analyze::Names& names);

  // False: there are more than can be compared.
  bool see(const analyze::Line& line);
  std::vector<Life> take();

 private:
  analyze::Name start_, fork_, exit_;
  HashMap<std::uint32_t, Life> open_;  // by pid
  std::vector<Life> ended_;
};

// The lives of a trace on a host, and how much later its time begins than the host's.
struct LivesOfTrace {
  std::size_t trace = 0;
  std::uint64_t offset_ns = 0;
  const std::vector<Life>* lives = nullptr;
};
// A process that two traces of a host have at the same time.
struct Twice {
  std::uint32_t pid = 0;
  std::size_t first = 0, second = 0;  // the traces
};
std::optional<Twice> find_twice(const std::vector<LivesOfTrace>& traces);

}  // namespace cudabpf::merge
