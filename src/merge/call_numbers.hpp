// Calls' ids, which are unique in each trace, become unique in all: they are given out anew, in
// pieces, as the traces come to them. So calls of about the same time still have ids close to each
// other, as analyses expect that keep the most recent calls by id.
#pragma once

#include <cstddef>
#include <cstdint>

#include "util/hash.hpp"

namespace cudabpf::merge {

class CallNumbers {
 public:
  // `given`: the next piece's number, which all traces take from; from 1, since 0 is no call's id.
  explicit CallNumbers(std::uint64_t& given) : given_(given) {}

  // False: the trace has ids so far apart that no program can have made the calls between them.
  bool add(std::uint64_t id) {
    std::uint64_t piece = id / SIZE;
    if (piece == last_ || pieces_.contains(piece)) return true;
    if (pieces_.size() == MAX) return false;
    pieces_.emplace(piece, given_++);
    return true;
  }
  // The id must have been added.
  std::uint64_t of(std::uint64_t id) {
    if (!id) return 0;
    std::uint64_t piece = id / SIZE;
    if (piece != last_) {
      last_ = piece;
      last_is_ = pieces_.at(piece);
    }
    return last_is_ * SIZE + id % SIZE;
  }

 private:
  static constexpr std::uint64_t SIZE = 4096;
  static constexpr std::size_t MAX = std::size_t{1} << 18;  // a thousand million calls

  std::uint64_t& given_;
  HashMap<std::uint64_t, std::uint64_t> pieces_;
  std::uint64_t last_ = ~std::uint64_t{0}, last_is_ = 0;
};

}  // namespace cudabpf::merge
