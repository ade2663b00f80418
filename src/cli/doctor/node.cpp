#include "cli/doctor/node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "util/console/terminal.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::cli {

namespace {

using Need = Finding::Need;

Finding check_pid_namespace(const std::string& path) {
  constexpr std::string_view OF_THE_MACHINE = "pid:[4026531836]";  // PROC_PID_INIT_INO
  const char* name = "processes";
  std::error_code error;
  std::string found = std::filesystem::read_symlink(path, error).string();
  if (error) return {Need::node, name, Verdict::unknown, path + ": " + error.message()};
  if (found == OF_THE_MACHINE)
    return {Need::node, name, Verdict::yes, "those of the whole machine are visible"};
  return {Need::node, name, Verdict::no,
          "cudabpf runs in its own pid namespace, so processes of other containers are not visible",
          "Kubernetes: `hostPID: true`; docker and podman: `--pid=host`"};
}

Finding check_pod_names(const std::string& folder) {
  const char* name = "names of pods";
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator pod(folder, error), end; !error && pod != end;
       pod.increment(error))
    count++;
  if (!error)
    return {Need::node, name, Verdict::yes,
            fmt::format("{}: {}", folder, count_of(count, "pod", "pods"))};
  Finding missing{Need::node, name, Verdict::no, folder + ": " + error.message()};
  missing.advice =
      error == std::errc::permission_denied
          ? "run it as root or with CAP_DAC_READ_SEARCH; until then, pods are shown by their uids"
          : "on a node of Kubernetes, mount the host's /var/log/pods and "
            "/var/log/containers; until then, pods are shown by their uids";
  return missing;
}

Finding check_gpu_figures(const NodePlaces& places) {
  const char *name = "figures of GPUs", *library = "/libnvidia-ml.so.1";
  const char* advice =
      "containers: use NVIDIA's runtime with NVIDIA_VISIBLE_DEVICES=all and "
      "NVIDIA_DRIVER_CAPABILITIES=compute,utility, which takes no GPU from other pods";
  auto folder = std::find_if(
      places.libraries.begin(), places.libraries.end(),
      [&](const std::string& one) { return access((one + library).c_str(), R_OK) == 0; });
  if (folder == places.libraries.end())
    return {Need::node, name, Verdict::no, "libnvidia-ml.so.1 is not on the linker's paths",
            advice};
  Fd device(::open(places.driver_device.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!device)
    return {Need::node, name, Verdict::no,
            places.driver_device + ": " + std::generic_category().message(errno), advice};
  return {Need::node, name, Verdict::yes, *folder + library};
}

Finding check_clock(const std::optional<ClockError>& clock) {
  constexpr std::uint32_t NOT_SYNCHRONISED = 0x40;  // STA_UNSYNC
  const char* name = "time of day";
  if (!clock) return {Need::node, name, Verdict::unknown, "the kernel does not say"};
  if (!(clock->status & NOT_SYNCHRONISED))
    return {Need::node, name, Verdict::yes,
            fmt::format("synchronised to within {:.1f} ms",
                        static_cast<double>(clock->max_error_us) / 1e3)};
  return {Need::node, name, Verdict::no, "it is not synchronised",
          "run chrony or systemd-timesyncd: events of several machines can be ordered only as "
          "exactly as their clocks agree"};
}

}  // namespace

void check_node(std::vector<Finding>& findings, const NodePlaces& places,
                const std::optional<ClockError>& clock) {
  findings.push_back(check_pid_namespace(places.pid_namespace));
  findings.push_back(check_pod_names(places.pod_logs));
  findings.push_back(check_gpu_figures(places));
  findings.push_back(check_clock(clock));
}

}  // namespace cudabpf::cli
