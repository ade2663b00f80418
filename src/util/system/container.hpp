// Which container, pod or systemd unit a process belongs to, as its cgroup's path tells.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

struct ContainerIdentity {
  // "docker", "containerd", "cri-o", "podman", "lxc" or "systemd-nspawn"; "kubernetes" where the
  // path tells the pod but not who runs it, "unknown" where it tells the id alone. Empty: not in a
  // container.
  std::string runtime = {};
  std::string id = {};    // 64 hex digits, or the name for lxc and systemd-nspawn
  std::string pod = {};   // the Kubernetes pod's uid
  std::string unit = {};  // outside containers: the systemd service or scope ("ssh.service")

  bool in_container() const { return !runtime.empty(); }
  bool operator==(const ContainerIdentity&) const = default;
};

// `cgroup` is the text of /proc/PID/cgroup (v1, v2 or both), or one cgroup path.
ContainerIdentity identify_container(std::string_view cgroup);

// The path that stands for the process in a trace: of v2 if there is one, else the longest of v1.
std::string_view cgroup_path(std::string_view cgroup);
// The path in the unified (v2) hierarchy; empty if there is none.
std::string_view unified_cgroup_path(std::string_view cgroup);
bool is_inside_cgroup(std::string_view path, std::string_view folder);

}  // namespace cudabpf
