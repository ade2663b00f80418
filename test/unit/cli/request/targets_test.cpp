#include "cli/request/targets.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include "sample_processes.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

namespace {

using Pids = std::vector<std::uint32_t>;

const std::string ID = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970";
const std::string ALIKE = "4f797c5300000000000000000000000000000000000000000000000000000000";

// Two trainings and a server, and the unified hierarchy of cgroups in a folder of the test's.
struct Machine : SampleProcesses {
  Machine() {
    add(100, 1, "python3.11");
    add(101, 1, "python3.11");
    add(200, 1, "server");
    write("self/mounts", "proc /proc proc rw 0 0\ncgroup " + path().string() +
                             "/v1 cgroup rw 0 0\ncgroup2 " + cgroups() + " cgroup2 rw 0 0\n");
  }
  std::string cgroups() const { return (path() / "cgroups").string(); }
  std::uint64_t make_cgroup(const std::string& name) const {
    std::filesystem::create_directories(cgroups() + name);
    struct stat status {};
    if (stat((cgroups() + name).c_str(), &status) != 0) throw std::runtime_error(name);
    return status.st_ino;
  }
  Result<Targets> find(const TargetFlags& flags) const { return find_targets(flags, procfs()); }
  Error refusal(const TargetFlags& flags) const {
    auto targets = find(flags);
    REQUIRE_FALSE(targets);
    CHECK(targets.error().exit_code == exit_code::NO_TARGET);
    return targets.error();
  }
};

}  // namespace

TEST_CASE("Processes are found by pid, each once, in the order in which they are named") {
  Machine machine;
  auto targets = machine.find({.pids = {200, 100, 200}, .names = {}, .container = {}});
  REQUIRE(targets);
  CHECK(targets->pids == Pids{200, 100});
  CHECK_FALSE(targets->cgroup);
}

TEST_CASE("A pid that no process has is an error, and so is a thread's") {
  Machine machine;
  CHECK(machine.refusal({.pids = {100, 300}, .names = {}, .container = {}}).message ==
        "--pid 300: there is no such process");
  CHECK(machine.refusal({.pids = {4294967295}, .names = {}, .container = {}}).message ==
        "--pid 4294967295: there is no such process");
  machine.add(102, 1, "worker");
  machine.write("102/status", "Tgid:\t100\nUid:\t0\t0\t0\t0\n");
  auto error = machine.refusal({.pids = {102}, .names = {}, .container = {}});
  CHECK(error.message == "--pid 102: it is a thread of process 100");
  CHECK(error.hint == "threads are traced with their process: --pid 100");
}

TEST_CASE("Processes are found by name, but not this one and those that started it") {
  Machine machine;
  pid_t own = getpid();
  machine.add(own, 400, "python3.11");
  machine.add(400, 1, "python3.11");
  auto targets = machine.find({.pids = {101}, .names = {"python3.11", "server"}, .container = {}});
  REQUIRE(targets);
  CHECK(targets->pids == Pids{101, 100, 200});
  CHECK(machine.refusal({.pids = {}, .names = {"server", "python"}, .container = {}}).message ==
        "--name python: no process of that name runs");
  machine.add(own, 1, "lonely");
  CHECK(machine.refusal({.pids = {}, .names = {"lonely"}, .container = {}}).message ==
        "--name lonely: no process of that name runs");
}

TEST_CASE("A container is found by the beginning of its id, with the folder that is its own") {
  Machine machine;
  machine.set_cgroup(100, "/docker/" + ID);
  machine.set_cgroup(101, "/docker/" + ID + "/deeper/still");
  machine.set_cgroup(200, "/system.slice/server.service");
  auto folder = machine.make_cgroup("/docker/" + ID);
  machine.make_cgroup("/docker/" + ID + "/deeper/still");
  for (std::string given : {ID, ID.substr(0, 12), ID.substr(0, 1)}) {
    auto targets = machine.find({.pids = {}, .names = {}, .container = given});
    REQUIRE(targets);
    CHECK(targets->pids == Pids{100, 101});
    REQUIRE(targets->cgroup);
    CHECK(targets->cgroup->id == folder);
    CHECK(targets->cgroup->level == 2);
    CHECK(targets->cgroup->path == "/docker/" + ID);
  }
  CHECK(machine.refusal({.pids = {}, .names = {}, .container = "5"}).message ==
        "--container 5: no process runs in such a container");
  CHECK(machine.refusal({.pids = {}, .names = {}, .container = ID + "0"}).message ==
        "--container " + ID + "0: no process runs in such a container");
}

TEST_CASE("A process deep in its container gives the container's folder, too") {
  Machine machine;
  machine.set_cgroup(101, "/docker/" + ID + "/deeper");
  auto folder = machine.make_cgroup("/docker/" + ID);
  auto targets = machine.find({.pids = {}, .names = {}, .container = ID});
  REQUIRE(targets);
  CHECK(targets->pids == Pids{101});
  REQUIRE(targets->cgroup);
  CHECK(targets->cgroup->id == folder);
  CHECK(targets->cgroup->path == "/docker/" + ID);
}

TEST_CASE("A beginning that two containers share names neither") {
  Machine machine;
  machine.set_cgroup(100, "/docker/" + ID);
  machine.set_cgroup(101, "/docker/" + ALIKE);
  auto error = machine.refusal({.pids = {}, .names = {}, .container = "4f797c53"});
  CHECK(error.message == "--container 4f797c53: more than one begins so, " + ID + " and " + ALIKE);
  CHECK(error.hint == "give more of the id");
  auto targets = machine.find({.pids = {}, .names = {}, .container = "4f797c530"});
  REQUIRE(targets);
  CHECK(targets->pids == Pids{101});
}

TEST_CASE("A cgroup is found by its path, as processes or as folders have it") {
  Machine machine;
  machine.set_cgroup(100, "/train.slice/a.scope");
  machine.set_cgroup(101, "/train.slice");
  machine.set_cgroup(200, "/train.slice2");
  auto folder = machine.make_cgroup("/train.slice");
  for (const std::string& given : {std::string("/train.slice"), std::string("/train.slice//"),
                                   machine.cgroups() + "/train.slice/"}) {
    CAPTURE(given);
    auto targets = machine.find({.pids = {}, .names = {}, .container = given});
    REQUIRE(targets);
    CHECK(targets->pids == Pids{100, 101});
    REQUIRE(targets->cgroup);
    CHECK(targets->cgroup->id == folder);
    CHECK(targets->cgroup->level == 1);
    CHECK(targets->cgroup->path == "/train.slice");
  }
}

TEST_CASE("A cgroup need not have processes, nor be of the unified hierarchy, but be one") {
  Machine machine;
  machine.make_cgroup("/empty.slice");
  auto empty = machine.find({.pids = {}, .names = {}, .container = "/empty.slice"});
  REQUIRE(empty);
  CHECK(empty->pids.empty());
  CHECK(empty->cgroup);
  machine.write("100/cgroup", "4:memory:/old/one\n0::/\n");
  auto old = machine.find({.pids = {}, .names = {}, .container = "/old"});
  REQUIRE(old);
  CHECK(old->pids == Pids{100});
  CHECK_FALSE(old->cgroup);
  CHECK(machine.refusal({.pids = {}, .names = {}, .container = "/neither"}).message ==
        "--container /neither: there is no such cgroup");
}

TEST_CASE("Without the unified hierarchy a container has its processes alone") {
  Machine machine;
  machine.write("self/mounts", "proc /proc proc rw 0 0\ncut");
  machine.set_cgroup(100, "/docker/" + ID);
  auto targets = machine.find({.pids = {}, .names = {}, .container = ID});
  REQUIRE(targets);
  CHECK(targets->pids == Pids{100});
  CHECK_FALSE(targets->cgroup);
}

TEST_CASE("Flags are empty until something is requested") {
  CHECK(TargetFlags{}.empty());
  CHECK_FALSE(TargetFlags{.pids = {1}, .names = {}, .container = {}}.empty());
  CHECK_FALSE(TargetFlags{.pids = {}, .names = {"a"}, .container = {}}.empty());
  CHECK_FALSE(TargetFlags{.pids = {}, .names = {}, .container = "a"}.empty());
  auto none = find_targets({}, Procfs());
  REQUIRE(none);
  CHECK(none->pids.empty());
  CHECK_FALSE(none->cgroup);
}
