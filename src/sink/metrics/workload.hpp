// What a process belongs to, in the words of those who run the machine: the labels of metrics.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "cudabpf/event.hpp"
#include "util/system/pod_names.hpp"

namespace cudabpf {

// Labels' values, as they are printed. Never a pid, an address or a kernel's name: there is no end
// of those.
struct Workload {
  std::string name_space = {}, pod = {},
              container = {};  // of Kubernetes; other containers have an id alone
  std::string unit = {};       // outside containers: the systemd service
  std::string slurm_job = {};
  std::string program = {};
  // NOLINTNEXTLINE(modernize-use-nullptr): what the compiler makes compares with 0
  auto operator<=>(const Workload&) const = default;
};

inline constexpr std::string_view OTHER_WORKLOADS = "(other)";
inline constexpr std::string_view UNKNOWN_PROGRAM = "(unknown)";

Workload workload_of(const Process& process, PodNames& pods);

// The number after "job_" in a cgroup that SLURM made; empty: there is none.
std::string_view slurm_job_in(std::string_view cgroup);

}  // namespace cudabpf
