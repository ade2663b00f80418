// What lines of processes say of each: its name, or the container that it is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "analyze/names.hpp"

namespace cudabpf::analyze {

class ByPid {
 public:
  // More than a machine has at once. What would come on top is not known, and full() says so.
  static constexpr std::size_t MOST = 1 << 16;

  void set(std::uint32_t pid, Name name) {
    if (names_.size() < MOST || names_.contains(pid))
      names_[pid] = name;
    else
      full_ = true;
  }
  void erase(std::uint32_t pid) { names_.erase(pid); }
  Name of(std::uint32_t pid) const {
    auto at = names_.find(pid);
    return at == names_.end() ? Name() : at->second;
  }
  bool full() const { return full_; }

 private:
  std::unordered_map<std::uint32_t, Name> names_;
  bool full_ = false;
};

}  // namespace cudabpf::analyze
