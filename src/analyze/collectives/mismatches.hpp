// Where two ranks asked for different things that they have to ask for alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cudabpf::analyze {

struct Mismatch {
  std::uint64_t identity = 0, seq = 0;
  std::uint64_t communicator = 0, other = 0;  // by their numbers; of a send, the other receives
  std::string field;                          // "count"
  std::string has, other_has;
  std::optional<std::uint32_t> to;  // the rank that receives; nothing: it is no send
};

class Mismatches {
 public:
  static constexpr std::size_t MAX = 1000;  // listed

  explicit Mismatches(std::size_t most = MAX) : most_(most) {}

  void add(Mismatch one) {
    count_++;
    if (listed_.size() < most_) listed_.push_back(std::move(one));
  }
  const std::vector<Mismatch>& listed() const { return listed_; }
  std::uint64_t count() const { return count_; }  // listed, or too many for that

 private:
  std::size_t most_;
  std::vector<Mismatch> listed_;
  std::uint64_t count_ = 0;
};

}  // namespace cudabpf::analyze
