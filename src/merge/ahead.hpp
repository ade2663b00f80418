// By how much one machine's clock is ahead of another's, by where their ranks met: in a collective
// of all ranks, no rank's kernel ends before every other's has begun.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cudabpf::merge {

// One rank's part in such a collective.
struct Meeting {
  struct Key {
    std::uint64_t identity = 0, seq = 0, launch = 0;  // of the communicator; there; of its graph
    // clang-tidy 14 takes the comparison's 0 for a pointer.
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  Key key;
  std::uint64_t begin = 0, end = 0;  // of its kernels, on the machine's monotonic clock

  static constexpr std::uint64_t LATEST = std::uint64_t{1} << 60;  // no end is later
};

struct Ahead {
  std::int64_t ns = 0;
  std::uint64_t bound_ns = 0;
};

// By how much the first machine's clock is ahead of the second's, wherever that one's traces have
// events. Both are in the order of their keys. Nothing: they met nowhere, or what they say of each
// other cannot be.
std::optional<Ahead> ahead_of(const std::vector<Meeting>& first, const std::vector<Meeting>& second,
                              std::pair<std::uint64_t, std::uint64_t> events);

}  // namespace cudabpf::merge
