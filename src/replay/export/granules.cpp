#include "replay/export/granules.hpp"

#include <algorithm>
#include <cstring>

namespace cudabpf::replay {

namespace {

constexpr std::size_t LANES = 4;  // since a multiplication takes some time
constexpr std::uint64_t FACTOR = 0x9e3779b97f4a7c15;

std::uint64_t mixed(std::uint64_t sum, std::uint64_t word) {
  constexpr int TURN = 29, WHOLE = 64;
  sum = (sum ^ word) * FACTOR;
  return (sum << TURN) | (sum >> (WHOLE - TURN));
}

}  // namespace

std::uint64_t fingerprint_of(std::string_view bytes) {
  constexpr std::size_t WORD = sizeof(std::uint64_t), STEP = WORD * LANES;
  std::uint64_t lanes[LANES] = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + STEP <= bytes.size(); at += STEP)
    for (std::size_t lane = 0; lane < LANES; lane++) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + lane * WORD, WORD);
      lanes[lane] = mixed(lanes[lane], word);
    }
  std::uint64_t sum = bytes.size();
  for (std::uint64_t lane : lanes) sum = mixed(sum, lane);
  for (; at < bytes.size(); at++) sum = mixed(sum, static_cast<unsigned char>(bytes[at]));
  return sum;
}

std::vector<Range> differences_between(std::string_view a, std::string_view b, const Range& range) {
  constexpr std::uint64_t VALUE = 8;
  constexpr std::size_t MAX = 256;
  std::vector<Range> all;
  for (std::size_t i = 0; i < a.size(); i++) {
    if (a[i] == b[i]) continue;
    std::uint64_t begin = std::max(range.begin, (range.begin + i) / VALUE * VALUE);
    std::uint64_t end = std::min(range.end, (range.begin + i) / VALUE * VALUE + VALUE);
    if (!all.empty() && begin <= all.back().end)
      all.back().end = end;
    else
      all.push_back({begin, end});
    i = end - range.begin - 1;
  }
  if (all.size() > MAX) all = joined(rounded(all, GRANULE), {range}, 1);
  if (all.size() > MAX) all = {{all.front().begin, all.back().end}};
  return all;
}

}  // namespace cudabpf::replay
