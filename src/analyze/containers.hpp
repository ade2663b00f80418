// In which container a process is: lines of its calls do not tell.
#pragma once

#include <string>
#include <unordered_map>

#include "analyze/line.hpp"

namespace cudabpf::analyze {

class Containers {
 public:
  explicit Containers(Names& names) : names_(names), none_(names.add("(no container)")) {}

  void process(const Line& line);
  Name of(std::uint32_t pid) const;  // "docker 8f2b…"

 private:
  Names& names_;
  Name none_;
  std::unordered_map<std::uint32_t, Name> by_pid_;
};

}  // namespace cudabpf::analyze
