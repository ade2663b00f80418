// Whom `attach` attaches to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cudabpf/source.hpp"
#include "util/result.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf::cli {

struct TargetFlags {
  std::vector<std::uint32_t> pids;
  std::vector<std::string> names;
  std::string container;

  bool empty() const { return pids.empty() && names.empty() && container.empty(); }
};

struct Targets {
  std::vector<std::uint32_t> pids;     // running now
  std::optional<CgroupFolder> cgroup;  // its processes, now or later
};

// The error says what was not found, and how to find it.
Result<Targets> find_targets(const TargetFlags& flags, const Procfs& procfs);

}  // namespace cudabpf::cli
