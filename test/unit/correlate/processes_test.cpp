#include "correlate/traced_processes.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstring>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint64_t TICK = 10'000'000;

RecordBytes about(const Head& head, abi::cb_kind kind, const char* comm = "python",
                  std::uint64_t start_time = 5 * TICK + 123) {
  auto bytes = process(head, kind);
  auto& record = bytes.as<abi::cb_process>();
  record.ppid = 42;
  record.uid = 1000;
  record.start_time = start_time;
  std::memcpy(record.comm, comm, std::min(std::strlen(comm) + 1, sizeof(record.comm)));
  return bytes;
}

ProcessIdentity in_proc(const char* comm = "python", std::uint64_t start_ns = 5 * TICK) {
  ProcessIdentity identity;
  identity.pid = 100;
  identity.ppid = 41;
  identity.comm = comm;
  identity.args = {"python", "train.py", "--all"};
  identity.exe = "/usr/bin/python3.11";
  identity.uid = 1000;
  identity.start_ns = start_ns;
  return identity;
}

std::string ops(const Correlating& c) {
  std::string out;
  for (const Process& p : c.sink.processes) {
    constexpr const char* NAMES[] = {"start", "fork", "exec", "exit"};
    out += NAMES[static_cast<int>(p.op)] + std::string(" ") + std::to_string(p.pid) + "\n";
  }
  return out;
}

const Process& last(const Correlating& c) { return c.sink.processes.back(); }

}  // namespace

TEST_CASE("A process is reported once, by its first record") {
  Correlating c({.begin_ns = 1000});
  c.proc[100] = in_proc();
  c.call({.ts = 1500}, "cuInit", {0});
  c.call({.ts = 1700}, "cuInit", {0});
  REQUIRE(ops(c) == "start 100\n");
  CHECK(last(c).ts == 500);
  CHECK(last(c).comm == "python");
  CHECK(last(c).cmdline == "python train.py --all");
  CHECK(last(c).exe == "/usr/bin/python3.11");
  CHECK(last(c).ppid == 41);
  CHECK(last(c).uid == 1000);
  CHECK(c.correlator.processes().alive() == 1);

  // If two threads make their first calls at once, one may be seen before the start.
  c.feed(entry({.ts = 1800}, "cuInit", {0}));
  c.feed(about({.ts = 1900}, abi::CB_START));
  CHECK(ops(c) == "start 100\n");
  c.feed(returned({.ts = 1850}, "cuInit"));
  CHECK(c.last().duration == 50);
}

TEST_CASE("A start of another process with the same pid is reported, and the old one's calls end") {
  Correlating c;
  c.proc[100] = in_proc();
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.proc.clear();
  c.feed(about({.ts = 20}, abi::CB_START, "other", 6 * TICK));
  CHECK(ops(c) == "start 100\nstart 100\n");
  CHECK(last(c).comm == "other");
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.last().unfinished);
}

TEST_CASE("Fork, exec, exit") {
  Correlating c({.begin_ns = 1000});
  c.feed(about({.ts = 1010}, abi::CB_FORK, "sh"));
  c.feed(about({.ts = 1020}, abi::CB_EXEC));
  CHECK(c.correlator.processes().known(100));
  c.feed(about({.ts = 1030}, abi::CB_EXIT));
  CHECK_FALSE(c.correlator.processes().known(100));
  CHECK(ops(c) == "fork 100\nexec 100\nexit 100\n");
  CHECK(c.sink.processes[0].comm == "sh");
  CHECK(c.sink.processes[0].ppid == 42);
  CHECK(c.sink.processes[1].ts == 20);
  CHECK(last(c).exit_code == 0);
  CHECK_FALSE(last(c).signal);

  // Each of its last two threads may believe that it is the last.
  c.feed(about({.ts = 1031}, abi::CB_EXIT));
  CHECK(c.sink.processes.size() == 3);
  c.feed(about({.ts = 1040}, abi::CB_FORK, "sh", 9 * TICK));
  c.feed(about({.ts = 1050}, abi::CB_EXIT, "sh", 9 * TICK));
  CHECK(ops(c) == "fork 100\nexec 100\nexit 100\nfork 100\nexit 100\n");
}

TEST_CASE("The command of run starts with the exec that makes it that command") {
  Correlating c;
  c.feed(about({}, abi::CB_EXEC));
  c.feed(about({}, abi::CB_EXEC));
  CHECK(ops(c) == "start 100\nexec 100\n");
}

TEST_CASE("A process that is announced starts then") {
  Correlating c;
  c.correlator.processes().announce(100, 7);
  c.correlator.processes().announce(100, 8);
  REQUIRE(ops(c) == "start 100\n");
  CHECK(last(c).ts == 7);
  CHECK(last(c).comm.empty());  // it was gone from /proc
}

TEST_CASE("How a process ended, as wait reports it") {
  Correlating c;
  auto end = [&](int status) {
    auto bytes = about({}, abi::CB_EXIT);
    bytes.head().result = status;
    bytes.as<abi::cb_process>().start_time = c.sink.processes.size();
    c.feed(bytes);
    return last(c);
  };
  CHECK(end(3 << 8).exit_code == 3);
  CHECK_FALSE(end(255 << 8).signal);
  CHECK(end(255 << 8).exit_code == 255);
  CHECK(end(SIGKILL).signal == SIGKILL);
  CHECK_FALSE(end(SIGKILL).exit_code);
  CHECK(end(SIGSEGV | 0x80).signal == SIGSEGV);  // with a core dumped
}

TEST_CASE("What follows the NUL is stale") {
  Correlating c;
  auto bytes = about({}, abi::CB_EXEC);
  auto& record = bytes.as<abi::cb_process>();
  std::memcpy(record.comm, "sh\0thon3.11\0\0\0\0", 16);
  std::memcpy(record.cgroup_name, "user.slice\0pe", 14);
  std::memcpy(record.cmdline, "sh\0-c\0exit 3\0\0\0stale", 21);
  record.cmdline_size = 15;
  c.feed(bytes);
  CHECK(last(c).comm == "sh");
  CHECK(last(c).cgroup == "user.slice");
  CHECK(last(c).cmdline == "sh -c exit 3");
}

TEST_CASE("Fields that are full have no NUL") {
  Correlating c;
  auto bytes = about({}, abi::CB_EXEC);
  auto& record = bytes.as<abi::cb_process>();
  std::memset(record.comm, 'c', sizeof(record.comm));
  std::memset(record.cgroup_name, 'g', sizeof(record.cgroup_name));
  std::memset(record.cmdline, 'a', sizeof(record.cmdline));
  record.cmdline_size = CB_CMDLINE;
  c.feed(bytes);
  CHECK(last(c).comm == std::string(CB_COMM, 'c'));
  CHECK(last(c).cgroup == std::string(CB_CGROUP_NAME, 'g'));
  CHECK(last(c).cmdline == std::string(CB_CMDLINE, 'a'));
}

TEST_CASE("/proc knows the whole command line, where the record was too short for it") {
  Correlating c;
  c.proc[100] = in_proc("cccccccccccccccc");
  auto bytes = about({}, abi::CB_EXEC, "cccccccccccccccc");
  auto& record = bytes.as<abi::cb_process>();
  std::memset(record.cmdline, 'a', sizeof(record.cmdline));
  record.cmdline_size = CB_CMDLINE;
  c.feed(bytes);
  CHECK(last(c).cmdline == "python train.py --all");
  CHECK(last(c).ppid == 42);  // the record's, which was taken at the time
}

TEST_CASE("/proc may be of a later program, or of a later process") {
  Correlating c;
  c.proc[100] = in_proc();
  c.feed(about({}, abi::CB_FORK, "sh"));  // it has run python since
  CHECK(last(c).comm == "sh");
  CHECK(last(c).exe.empty());
  CHECK(last(c).cmdline.empty());
  c.proc[101] = in_proc("python", 99 * TICK);
  c.proc[101].ns_pids = {101, 1};
  c.feed(about({.pid = 101, .tid = 101}, abi::CB_FORK));
  CHECK(last(c).exe.empty());
  CHECK(last(c).ns_pid == 0);
}

TEST_CASE("Pids inside a container, and the container") {
  Correlating c;
  const std::string id(64, 'a');
  auto bytes = about({}, abi::CB_EXEC);
  bytes.as<abi::cb_process>().ns_pid = 7;
  SECTION("by the record's cgroup alone") {
    std::string leaf = "docker-" + id + ".scope";
    std::memcpy(bytes.as<abi::cb_process>().cgroup_name, leaf.data(), leaf.size());
    c.feed(bytes);
    CHECK(last(c).ns_pid == 7);
  }
  SECTION("by /proc") {
    c.proc[100] = in_proc();
    c.proc[100].cgroup = "0::/system.slice/docker-" + id + ".scope\n";
    c.proc[100].ns_pids = {100, 8, 7};
    c.feed(bytes);
    CHECK(last(c).ns_pid == 7);
    CHECK(last(c).cgroup == "/system.slice/docker-" + id + ".scope");
  }
  CHECK(last(c).container_runtime == "docker");
  CHECK(last(c).container_id == id);

  c.feed(about({.pid = 300, .tid = 300}, abi::CB_EXEC));
  CHECK(last(c).ns_pid == 0);
  CHECK(last(c).container_runtime.empty());
  CHECK(last(c).container_id.empty());
  CHECK(last(c).unit.empty());
}

TEST_CASE("A process is reported with its pod, or with its service") {
  Correlating c;
  std::string id(64, 'a'), uid = "6b4a2c1e-0000-4000-8000-1234567890ab";
  c.proc[100] = in_proc();
  c.proc[100].cgroup = "0::/kubepods/burstable/pod" + uid + "/" + id + "\n";
  c.feed(about({}, abi::CB_EXEC));
  CHECK(last(c).container_id == id);
  CHECK(last(c).pod == uid);
  CHECK(last(c).unit.empty());

  c.proc[100].cgroup = "0::/system.slice/vllm.service\n";
  c.feed(about({}, abi::CB_EXEC));
  CHECK(last(c).container_runtime.empty());
  CHECK(last(c).pod.empty());
  CHECK(last(c).unit == "vllm.service");
}
