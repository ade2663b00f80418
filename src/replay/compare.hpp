// Compares what runs of a tape left with what the program left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/messages.hpp"

namespace cudabpf::replay {

// What memory of unknown contents is filled with. Every second run has another byte: what depends
// on such memory then differs between the runs.
inline constexpr unsigned char UNKNOWN[] = {0xA5, 0x5A};

// What several runs left in the same bytes.
class Runs {
 public:
  Runs(std::string_view first, bool was_known) : first_(first), was_known_(was_known) {}

  // What the next run left.
  void add(std::string_view bytes);
  // What is compared from now on, and is no run: what differs from it does not vary for that.
  void judge(std::string_view bytes) { judged_ = bytes; }
  // Compares a part of them. Adds up what is found; of what differs, the first places are kept:
  // `at` is the part's address, or its place in what `where` names.
  void compare(std::size_t begin, std::string_view expected, const std::string& where,
               std::uint64_t at, Bytes& sums, std::vector<Difference>& differences) const;

 private:
  bool varies(std::size_t i) const;
  bool is_not_written(std::size_t i) const;

  std::string first_;
  std::optional<std::string> judged_;
  std::string changes_;  // by byte: how the runs differed; empty: in nothing
  bool was_known_;       // what they were before the tape ran
};

}  // namespace cudabpf::replay
