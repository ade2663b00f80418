#include "replay/compare.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cudabpf::replay {

namespace {

constexpr std::size_t MAX_DIFFERENCES = 8, SHOWN_BYTES = 8;
// A value that is not deterministic may have bytes that are the same in all runs, such as those
// with its exponent, and others in the program. No value is longer.
constexpr std::size_t VALUE = 8;
constexpr char SAME = 0, FILLED = 1, OTHER = 2;  // only the byte of unknown memory differed

void add_byte(std::string& hex, char byte) {
  if (hex.size() < 2 * SHOWN_BYTES) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
}

void add_difference(const std::string& where, std::uint64_t at, char expected, char got,
                    std::vector<Difference>& differences) {
  bool follows = !differences.empty() && differences.back().where == where &&
                 differences.back().at.value + differences.back().size == at;
  if (!follows && differences.size() == MAX_DIFFERENCES) return;
  if (!follows) differences.push_back({where, {at}, 0, {}, {}});
  Difference& last = differences.back();
  last.size++;
  add_byte(last.expected, expected);
  add_byte(last.got, got);
}

bool is_filled(char first, char now) {
  return static_cast<unsigned char>(first) == UNKNOWN[0] &&
         static_cast<unsigned char>(now) == UNKNOWN[1];
}

}  // namespace

void Runs::add(std::string_view bytes) {
  if (bytes == first_) return;
  changes_.resize(first_.size(), SAME);
  for (std::size_t i = 0; i < first_.size(); i++)
    if (bytes[i] != first_[i])
      changes_[i] = std::max(changes_[i], is_filled(first_[i], bytes[i]) ? FILLED : OTHER);
}

bool Runs::is_not_written(std::size_t i) const { return !was_known_ && changes_[i] == FILLED; }

bool Runs::varies(std::size_t i) const {
  std::size_t begin = i / VALUE * VALUE;
  for (std::size_t k = begin; k < std::min(begin + VALUE, changes_.size()); k++)
    if (changes_[k] != SAME && !is_not_written(k)) return true;
  return false;
}

void Runs::compare(std::size_t begin, std::string_view expected, const std::string& where,
                   std::uint64_t at, Bytes& sums, std::vector<Difference>& differences) const {
  sums.compared += expected.size();
  const std::string& left = judged_ ? *judged_ : first_;
  if (changes_.empty() && std::string_view(left).substr(begin, expected.size()) == expected) {
    sums.equal += expected.size();
    return;
  }
  for (std::size_t i = 0; i < expected.size(); i++) {
    std::size_t place = begin + i;
    if (!changes_.empty() && is_not_written(place)) {
      sums.not_written++;
    } else if (!changes_.empty() && varies(place)) {
      sums.not_deterministic++;
    } else if (left[place] == expected[i]) {
      sums.equal++;
    } else {
      sums.different++;
      add_difference(where, at + i, expected[i], left[place], differences);
    }
  }
}

}  // namespace cudabpf::replay
