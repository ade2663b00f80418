#include "sink/metrics/workload.hpp"

#include <algorithm>

#include "util/system/container.hpp"
#include "util/text/label_value.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t SHORT_ID = 12;  // of a container, as its tools show it

std::string_view program_of(const Process& process) {
  std::string_view exe = process.exe;
  constexpr std::string_view DELETED = " (deleted)";
  if (exe.ends_with(DELETED)) exe.remove_suffix(DELETED.size());
  exe.remove_prefix(std::min(exe.rfind('/') + 1, exe.size()));
  if (!exe.empty()) return exe;
  return process.comm.empty() ? std::string_view("?") : std::string_view(process.comm);
}

}  // namespace

// Users may have cgroups of their own, with any name, but only below their sessions.
std::string_view slurm_job_in(std::string_view cgroup) {
  constexpr std::string_view BEFORE = "/job_", DAEMON = "slurmstepd.scope/";
  bool is_slurms = cgroup.starts_with("/slurm/") ||
                   (cgroup.starts_with("/system.slice/") && cgroup.find(DAEMON) != cgroup.npos);
  std::size_t at = is_slurms ? cgroup.find(BEFORE) : cgroup.npos;
  if (at == cgroup.npos) return {};
  std::string_view rest = cgroup.substr(at + BEFORE.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

Workload workload_of(const Process& process, PodNames& pods) {
  Workload workload;
  workload.program = label_value(program_of(process));
  // These are said of workloads that are not told apart.
  if (workload.program == OTHER_WORKLOADS || workload.program == UNKNOWN_PROGRAM)
    workload.program = "./" + workload.program;
  std::string_view cgroup = without_parents(process.cgroup);
  workload.slurm_job = label_value(slurm_job_in(cgroup));
  // Scopes are made for single processes, with numbers in their names.
  if (workload.slurm_job.empty() && process.unit.ends_with(".service"))
    workload.unit = label_value(process.unit);
  workload.container = label_value(process.container_id.substr(0, SHORT_ID));
  if (process.pod.empty() || cgroup.starts_with("/user.slice")) return workload;
  workload.pod = label_value(process.pod);
  if (auto named = pods.find(process.pod, process.container_id)) {
    workload.name_space = label_value(named->name_space);
    workload.pod = label_value(named->pod);
    if (!named->container.empty()) workload.container = label_value(named->container);
  }
  return workload;
}

}  // namespace cudabpf
