#include "sink/metrics/workload.hpp"

#include <algorithm>

#include "util/text/ascii.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t SHORT_ID = 12;  // of a container, as its tools show it

std::string_view program_of(const Process& process) {
  std::string_view exe = process.exe;
  constexpr std::string_view DELETED = " (deleted)";
  if (exe.ends_with(DELETED)) exe.remove_suffix(DELETED.size());
  exe.remove_prefix(std::min(exe.rfind('/') + 1, exe.size()));
  if (!exe.empty()) return exe;
  return process.comm.empty() ? UNKNOWN_PROGRAM : std::string_view(process.comm);
}

}  // namespace

std::string_view slurm_job_in(std::string_view cgroup) {
  constexpr std::string_view BEFORE = "/job_";
  std::size_t at = cgroup.find("slurm");
  if (at == cgroup.npos || (at = cgroup.find(BEFORE, at)) == cgroup.npos) return {};
  std::string_view rest = cgroup.substr(at + BEFORE.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

Workload workload_of(const Process& process, PodNames& pods) {
  Workload workload;
  workload.program = program_of(process);
  workload.slurm_job = slurm_job_in(process.cgroup);
  if (workload.slurm_job.empty()) workload.unit = process.unit;
  workload.container = process.container_id.substr(0, SHORT_ID);
  workload.pod = process.pod;
  if (process.pod.empty()) return workload;
  if (auto named = pods.find(process.pod, process.container_id)) {
    workload.name_space = named->name_space;
    workload.pod = named->pod;
    if (!named->container.empty()) workload.container = named->container;
  }
  return workload;
}

}  // namespace cudabpf
