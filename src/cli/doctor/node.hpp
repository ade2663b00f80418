// Whether this machine shows `cudabpf metrics` all that a node of a cluster has to tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/diagnosis.hpp"
#include "util/system/clock.hpp"

namespace cudabpf::cli {

// Where it is looked for.
struct NodePlaces {
  std::string pid_namespace = "/proc/self/ns/pid";
  std::string pod_logs = "/var/log/pods";
  std::string driver_device = "/dev/nvidiactl";
  std::vector<std::string> libraries = {};  // folders
};

void check_node(std::vector<Finding>& findings, const NodePlaces& places,
                const std::optional<ClockError>& clock);

}  // namespace cudabpf::cli
