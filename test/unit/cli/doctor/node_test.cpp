#include "cli/doctor/node.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

namespace {

constexpr const char *PROCESSES = "processes", *PODS = "names of pods", *GPUS = "figures of GPUs",
                     *CLOCK = "time of day";

Finding found(const NodePlaces& places, std::string_view name,
              const std::optional<ClockError>& clock = {}) {
  std::vector<Finding> findings;
  check_node(findings, places, clock);
  for (const Finding& finding : findings)
    if (finding.name == name) return finding;
  return {Finding::Need::node, "missing", Verdict::unknown, ""};
}

}  // namespace

TEST_CASE("A node's processes are visible in the machine's own pid namespace alone") {
  TemporaryFolder folder;
  std::string link = (folder.path() / "pid").string();
  CHECK(found({.pid_namespace = link}, PROCESSES).verdict == Verdict::unknown);
  folder.link("pid", "pid:[4026531836]");
  CHECK(found({.pid_namespace = link}, PROCESSES).verdict == Verdict::yes);
  std::filesystem::remove(link);
  folder.link("pid", "pid:[4026532199]");
  Finding own = found({.pid_namespace = link}, PROCESSES);
  CHECK(own.verdict == Verdict::no);
  CHECK(own.advice.find("hostPID: true") != std::string::npos);
}

TEST_CASE("The names of a node's pods come from the kubelet's logs") {
  TemporaryFolder folder;
  std::string logs = folder.path().string() + "/pods";
  Finding missing = found({.pod_logs = logs}, PODS);
  CHECK(missing.verdict == Verdict::no);
  CHECK(missing.what == logs + ": No such file or directory");
  CHECK(missing.advice.find("mount") != std::string::npos);
  std::filesystem::create_directories(logs + "/ml_train-0_4d5e");
  Finding one = found({.pod_logs = logs}, PODS);
  CHECK(one.verdict == Verdict::yes);
  CHECK(one.what == logs + ": 1 pod");
}

TEST_CASE("A node's GPUs have figures where NVML and the driver's device are") {
  TemporaryFolder folder;
  NodePlaces places{.driver_device = folder.path().string() + "/nvidiactl",
                    .libraries = {"/nowhere", folder.path().string()}};
  CHECK(found(places, GPUS).what == "libnvidia-ml.so.1 is not on the linker's paths");
  folder.write("libnvidia-ml.so.1", "x");
  Finding without = found(places, GPUS);
  CHECK(without.verdict == Verdict::no);
  CHECK(without.what == places.driver_device + ": No such file or directory");
  folder.write("nvidiactl", "x");
  Finding with = found(places, GPUS);
  CHECK(with.verdict == Verdict::yes);
  CHECK(with.what == folder.path().string() + "/libnvidia-ml.so.1");
}

TEST_CASE("A node's clock is right as far as it is synchronised") {
  CHECK(found({}, CLOCK).verdict == Verdict::unknown);
  CHECK(found({}, CLOCK, ClockError{.max_error_us = 1500}).what == "synchronised to within 1.5 ms");
  Finding free = found({}, CLOCK, ClockError{.max_error_us = 16'000'000, .status = 0x40});
  CHECK(free.verdict == Verdict::no);
  CHECK(free.what == "it is not synchronised");
}
