// What memory each process holds, as far as the trace has seen it: the size of what is freed, and
// which side of a copy an address is on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "cudabpf/event.hpp"

namespace cudabpf {

class Allocations {
 public:
  // Follows a memory call that succeeded, and completes its details (the size of a free).
  void follow(std::uint32_t pid, const Function& function, Details& details);
  // Finds the direction of a copy between addresses that may be on either side. Leaves it alone
  // where neither address is known.
  void infer_direction(std::uint32_t pid, Details& details) const;
  void process_gone(std::uint32_t pid) { processes_.erase(pid); }

 private:
  struct Range {
    std::uint64_t size;
    bool host;
  };
  using Ranges = std::map<std::uint64_t, Range>;

  static const Range* range_at(const Ranges& ranges, std::uint64_t address);

  std::unordered_map<std::uint32_t, Ranges> processes_;
};

}  // namespace cudabpf
