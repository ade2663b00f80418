// Finds from a process's cgroup path which container, pod or systemd unit it belongs to.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

struct ContainerIdentity {
  // "docker", "containerd", "cri-o", "podman", "lxc" or "systemd-nspawn"; "kubernetes" if the path
  // gives the pod but not the runtime, "unknown" if it gives only the id. Empty: not in a
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

// The path that a trace shows for the process: that of v2 if there is one, else v1's longest.
std::string_view cgroup_path(std::string_view cgroup);
// The path in the unified (v2) hierarchy; empty if there is none.
std::string_view unified_cgroup_path(std::string_view cgroup);
// Without the "/.." at its beginning that a reader in a cgroup namespace of its own is shown: what
// is left begins where the two paths part.
std::string_view without_parents(std::string_view path);
bool is_inside_cgroup(std::string_view path, std::string_view folder);

}  // namespace cudabpf
