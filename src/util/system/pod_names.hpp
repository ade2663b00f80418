// The names of Kubernetes pods and their containers, from the folders in which the kubelet keeps
// their logs. That takes no API server and no token.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace cudabpf {

class PodNames {
 public:
  struct Named {
    std::string name_space, pod;
    std::string container;  // empty: not known
    bool operator==(const Named&) const = default;
  };
  // `logs` has a folder `pods` with a subfolder NAMESPACE_POD_UID for each pod, and one named
  // `containers` with a link POD_NAMESPACE_CONTAINER-ID.log for each container.
  explicit PodNames(std::string logs = "/var/log") : logs_(std::move(logs)) {}

  // By the pod's uid and the container's id, as cgroups have them. Nothing: there are no logs of
  // the pod, or they cannot be read. The folders are read again for a pod and container that was
  // not looked for before, and else at most once a second.
  std::optional<Named> find(std::string_view pod_uid, std::string_view container_id);
  // A folder that is there and could not be read, and why; empty: there was none.
  const std::string& unreadable() const { return unreadable_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t MAX = 8192;  // names that are kept
  void read();
  template <typename Take>
  void read_folder(const std::string& folder, Take take);

  std::string logs_, unreadable_;
  Clock::time_point read_at_;
  std::map<std::string, Named> pods_;        // by uid, without dashes
  std::map<std::string, Named> containers_;  // by id
  std::set<std::pair<std::string, std::string>> looked_for_;
};

}  // namespace cudabpf
