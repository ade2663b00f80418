#include "sink/metrics/workload.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/temporary_folder.hpp"

using namespace cudabpf;

namespace {

const std::string ID(64, 'a');
constexpr const char* UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

}  // namespace

TEST_CASE("A pod's names come from the folders of its logs") {
  TemporaryFolder logs;
  std::filesystem::create_directories(logs.path() / "pods" / ("ml_train-0_" + std::string(UID)));
  logs.write("pods/not a pod", "");
  logs.link("containers/train-0_ml_worker-a-" + ID + ".log", "/x");
  logs.link("containers/odd.log", "/x");
  logs.link("containers/a_b_-" + ID.substr(1) + ".log", "/x");
  PodNames pods(logs.path());
  PodNames::Named named{"ml", "train-0", "worker-a"};
  CHECK(pods.find(UID, ID) == named);
  CHECK(pods.find("0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0", ID) == named);  // as systemd has it
  CHECK(pods.find(UID, "") == PodNames::Named{"ml", "train-0", ""});
  CHECK_FALSE(pods.find("another", std::string(64, 'b')));
  // A pod that has begun since is found at once.
  std::filesystem::create_directories(logs.path() / "pods" /
                                      "ml_train-1_0123456789abcdef0123456789abcdef");
  CHECK(pods.find("0123456789abcdef0123456789abcdef", "") == PodNames::Named{"ml", "train-1", ""});
  CHECK(pods.unreadable().empty());
  PodNames none("/nowhere");
  CHECK_FALSE(none.find(UID, ID));
  CHECK(none.unreadable().empty());
  logs.write("odd/pods", "");
  PodNames unreadable(logs.path() / "odd");
  CHECK_FALSE(unreadable.find(UID, ID));
  CHECK(unreadable.unreadable() == (logs.path() / "odd/pods").string() + ": Not a directory");
}

TEST_CASE("A workload is what a process belongs to") {
  TemporaryFolder logs;
  std::filesystem::create_directories(logs.path() / "pods" / ("ml_train-0_" + std::string(UID)));
  PodNames pods(logs.path());
  Process process;
  process.comm = "python3";
  CHECK(workload_of(process, pods).program == "python3");
  process.exe = "/usr/bin/python3.11 (deleted)";
  process.unit = "app.service";
  CHECK(workload_of(process, pods) == Workload{.unit = "app.service", .program = "python3.11"});
  process.unit.clear();
  process.container_id = ID;
  CHECK(workload_of(process, pods).container == std::string(12, 'a'));
  process.pod = UID;
  CHECK(workload_of(process, pods) == Workload{.name_space = "ml",
                                               .pod = "train-0",
                                               .container = std::string(12, 'a'),
                                               .program = "python3.11"});
  process.cgroup = "/user.slice/user-1000.slice/user@1000.service/kubepods";  // anybody's
  CHECK(workload_of(process, pods).pod.empty());
  process.cgroup.insert(0, "/../../..");  // as it is shown to a container
  CHECK(workload_of(process, pods).pod.empty());
  process.cgroup.clear();
  process.pod = "of which there are no logs";
  CHECK(workload_of(process, pods).pod == process.pod);
  CHECK(workload_of({}, pods).program == "?");
}

TEST_CASE("A container that counts the machine's calls sees jobs as the machine does") {
  PodNames pods("/nowhere");
  Process process;
  process.cgroup = "/../../../system.slice/slurmstepd.scope/job_77/step_0";
  CHECK(workload_of(process, pods).slurm_job == "77");
  process.cgroup = "/../../pod/slurmstepd.scope/job_77";
  CHECK(workload_of(process, pods).slurm_job.empty());
}

TEST_CASE("A workload's name is cut and repaired, and cannot be that of others") {
  PodNames pods("/nowhere");
  Process process;
  process.exe = "/" + std::string(200, 'x');
  CHECK(workload_of(process, pods).program == std::string(128, 'x'));
  process.exe = "/\xff";
  CHECK(workload_of(process, pods).program == "\xef\xbf\xbd");
  process.exe = "/(other)";
  CHECK(workload_of(process, pods).program == "./(other)");
  process.unit = "run-r0123.scope";  // made for one process
  CHECK(workload_of(process, pods).unit.empty());
}

TEST_CASE("SLURM's jobs are known by their cgroups") {
  CHECK(slurm_job_in("/slurm/uid_1000/job_123/step_0") == "123");
  CHECK(slurm_job_in("/system.slice/slurmstepd.scope/job_77/step_batch/user/task_0") == "77");
  CHECK(slurm_job_in("/system.slice/job_9.service").empty());
  CHECK(slurm_job_in("/slurm/uid_1000").empty());
  CHECK(slurm_job_in("/user.slice/user-1000.slice/user@1000.service/slurm/job_42").empty());
  PodNames pods("/nowhere");
  Process process;
  process.exe = "/a";
  process.unit = "slurmstepd.scope";
  process.cgroup = "/system.slice/slurmstepd.scope/job_77/step_0";
  CHECK(workload_of(process, pods) == Workload{.slurm_job = "77", .program = "a"});
}
