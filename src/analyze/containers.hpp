// In which container a process is: lines of its calls do not tell.
#pragma once

#include "analyze/by_pid.hpp"
#include "analyze/line.hpp"

namespace cudabpf::analyze {

class Containers {
 public:
  explicit Containers(Names& names)
      : names_(names), none_(names.add("(no container)")), not_known_(names.add("(not known)")) {}

  void process(const Line& line);
  Name of(std::uint32_t pid) const;  // "docker 8f2b…"

 private:
  Names& names_;
  Name none_, not_known_;
  ByPid by_pid_;
};

}  // namespace cudabpf::analyze
