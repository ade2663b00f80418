#include "util/system/procfs.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

namespace {

// /proc/PID/stat with the fields that are read; the rest is filler.
std::string stat_line(pid_t pid, std::string_view comm, pid_t ppid, std::uint64_t start_ticks) {
  return std::to_string(pid) + " (" + std::string(comm) + ") S " + std::to_string(ppid) +
         " 1 1 0 -1 4194560 11 12 13 14 15 16 17 18 20 0 5 0 " + std::to_string(start_ticks) +
         " 4096 10 18446744073709551615\n";
}

}  // namespace

TEST_CASE("A line of maps is taken apart") {
  auto mapping = parse_mapping(
      "7f3c00000000-7f3c00021000 r-xp 00001000 fe:1f 10994651                   "
      "/usr/lib/libcuda.so.580.95.05");
  REQUIRE(mapping);
  CHECK(mapping->start == 0x7f3c00000000);
  CHECK(mapping->end == 0x7f3c00021000);
  CHECK(mapping->perms == "r-xp");
  CHECK(mapping->executable());
  CHECK(mapping->offset == 0x1000);
  CHECK(mapping->major == 0xfe);
  CHECK(mapping->minor == 0x1f);
  CHECK(mapping->inode == 10994651);
  CHECK(mapping->path == "/usr/lib/libcuda.so.580.95.05");

  // Kernel addresses need all 64 bits.
  mapping = parse_mapping(
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  REQUIRE(mapping);
  CHECK(mapping->end == 0xffffffffff601000);
  CHECK(mapping->path == "[vsyscall]");
}

TEST_CASE("Paths in maps are given back as they were") {
  struct Case {
    const char* text;
    const char* path;
  };
  const Case cases[] = {
      {"/lib/a.so", "/lib/a.so"},
      {"/lib/a.so (deleted)", "/lib/a.so"},
      {"/lib/with blank  two.so", "/lib/with blank  two.so"},
      {"/lib/new\\012line.so", "/lib/new\nline.so"},
      {"/lib/\\012\\012", "/lib/\n\n"},
      // Only newlines are escaped, so other backslashes are the file's own.
      {"/lib/back\\slash\\101\\01", "/lib/back\\slash\\101\\01"},
      {"/lib/deleted) (deleted) (deleted)", "/lib/deleted) (deleted)"},
      {"/memfd:x (deleted)", "/memfd:x"},
      {"[heap]", "[heap]"},
      {"anon_inode:[perf_event]", "anon_inode:[perf_event]"},
      {"", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    auto mapping = parse_mapping("1000-2000 r--s 00000000 00:00 0 " + std::string(c.text));
    REQUIRE(mapping);
    CHECK(mapping->path == c.path);
    CHECK_FALSE(mapping->executable());
  }
}

TEST_CASE("What is no line of maps is refused") {
  for (const char* line : {
           "",
           " ",
           "1000",
           "1000-",
           "1000-2000",
           "1000-2000 r-xp",
           "1000-2000 r-xp 0",
           "1000-2000 r-xp 0 00:00",
           "1000-2000 r-x 0 00:00 0",
           "2000-1000 r-xp 0 00:00 0",
           "x000-2000 r-xp 0 00:00 0",
           "1000-2000 r-xp g 00:00 0",
           "1000-2000 r-xp 0 00:00 -1",
           "1000-2000 r-xp 0 0000 0 /a",
           "11112222333344445-2 r-xp 0 00:00 0",
       }) {
    CAPTURE(line);
    CHECK_FALSE(parse_mapping(line));
  }
  CHECK(parse_maps("").empty());
  auto mappings = parse_maps("1000-2000 r-xp 0 00:00 0 /a\nnonsense\n3000-4000 rw-p 0 00:00 0\n");
  REQUIRE(mappings.size() == 2);
  CHECK(mappings[0].path == "/a");
  CHECK(mappings[1].start == 0x3000);
}

TEST_CASE("A process is read whole") {
  TemporaryFolder proc;
  proc.write("42/stat", stat_line(42, "a) S 7 (b", 40, 12345));
  proc.write("42/cmdline", std::string_view("python\0my script.py\0\0--n\0", 25));
  proc.write("42/status",
             "Name:\ta) S 7 (b\nUidX:\t9\t9\t9\t9\nUid:\t1000\t0\t0\t0\nNSpid:\t42\t7\t1\n");
  proc.write("42/cgroup", "0::/system.slice/ssh.service\n");
  proc.write("42/environ", std::string_view("PATH=/bin\0EMPTY=\0A=b=c\0", 23));
  proc.link("42/exe", "/usr/bin/python3.11 (deleted)");
  for (const char* task : {"42", "43", "100", "9"}) {
    fs::create_directories(proc.path() / "42/task" / task);
  }

  Procfs procfs(proc.path());
  ProcessIdentity process = procfs.process(42);
  CHECK(process.pid == 42);
  CHECK(process.ppid == 40);
  CHECK(process.comm == "a) S 7 (b");
  CHECK(process.args == std::vector<std::string>{"python", "my script.py", "", "--n"});
  CHECK(process.cmdline() == "python my script.py  --n");
  CHECK(process.exe == "/usr/bin/python3.11");
  CHECK(process.uid == 1000);
  CHECK(process.ns_pids == std::vector<pid_t>{42, 7, 1});
  CHECK(process.start_ns ==
        12345 * (1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK))));
  CHECK(process.cgroup == "0::/system.slice/ssh.service\n");
  CHECK(procfs.environment(42) == std::vector<std::string>{"PATH=/bin", "EMPTY=", "A=b=c"});
  CHECK(procfs.threads(42) == std::vector<pid_t>{9, 42, 43, 100});
  CHECK(procfs.exists(42));
  CHECK_FALSE(procfs.is_exiting(42));
  proc.write("43/stat", "43 (gone) S 40 1 1 0 -1 4194564 11 12 13\n");
  CHECK(procfs.is_exiting(43));
  CHECK_FALSE(procfs.is_exiting(44));
  CHECK(procfs.path(42, "root/lib") == proc.path().string() + "/42/root/lib");
}

TEST_CASE("Whatever is missing of a process stays empty") {
  TemporaryFolder proc;
  Procfs procfs(proc.path());
  auto check_empty = [&](pid_t pid) {
    ProcessIdentity process = procfs.process(pid);
    CHECK(process.pid == pid);
    CHECK(process.ppid == 0);
    CHECK(process.comm.empty());
    CHECK(process.args.empty());
    CHECK(process.cmdline().empty());
    CHECK(process.exe.empty());
    CHECK_FALSE(process.uid);
    CHECK(process.ns_pids.empty());
    CHECK(process.start_ns == 0);
    CHECK(process.cgroup.empty());
    CHECK(procfs.maps(pid).empty());
    CHECK(procfs.environment(pid).empty());
    CHECK(procfs.ancestors(pid).empty());
  };
  SECTION("no such process") {
    check_empty(42);
    CHECK_FALSE(procfs.exists(42));
  }
  SECTION("an empty folder, as a process leaves it that dies meanwhile") {
    fs::create_directories(proc.path() / "42");
    check_empty(42);
  }
  SECTION("nonsense") {
    for (const char* name : {"42/stat", "42/status", "42/maps"}) proc.write(name, ")(\n\n:");
    proc.link("42/ns/mnt", "mnt:4026531840");
    check_empty(42);
  }
  SECTION("no /proc at all") {
    Procfs missing(proc.path() / "missing");
    CHECK(missing.pids().empty());
    CHECK(missing.find_by_name("python").empty());
  }
}

TEST_CASE("Processes are listed, found by name and walked") {
  TemporaryFolder proc;
  auto add = [&](pid_t pid, const char* comm, pid_t ppid, const char* exe, std::string_view args) {
    std::string folder = std::to_string(pid) + "/";
    proc.write(folder + "stat", stat_line(pid, comm, ppid, 1));
    proc.write(folder + "cmdline", args);
    if (*exe) proc.link(folder + "exe", exe);
  };
  add(1, "init", 0, "/sbin/init", "");
  add(2, "kthreadd", 0, "", "");
  add(100, "sudo", 1, "/usr/bin/sudo", std::string_view("sudo\0cudabpf\0", 13));
  add(30, "cudabpf", 100, "/opt/cudabpf", std::string_view("./cudabpf\0", 10));
  add(101, "transformer_inf", 30, "/usr/bin/python3.11 (deleted)",
      std::string_view("/venv/bin/python\0transformer_inference.py\0", 42));
  add(102, "python3.1", 30, "/usr/bin/cudabpf.old", "");
  proc.write("cpuinfo", "");
  fs::create_directories(proc.path() / "sys");
  fs::create_directories(proc.path() / "7x");
  proc.link("self", "101");

  Procfs procfs(proc.path());
  using Pids = std::vector<pid_t>;
  CHECK(procfs.pids() == Pids{1, 2, 30, 100, 101, 102});
  CHECK(procfs.parents() == std::vector<std::pair<pid_t, pid_t>>{
                                {1, 0}, {2, 0}, {30, 100}, {100, 1}, {101, 30}, {102, 30}});
  CHECK(procfs.ancestors(101) == Pids{30, 100, 1});
  CHECK(procfs.ancestors(1).empty());
  CHECK(procfs.find_by_name("cudabpf") == Pids{30});
  CHECK(procfs.find_by_name("python") == Pids{101});
  CHECK(procfs.find_by_name("python3.11") == Pids{101});
  CHECK(procfs.find_by_name("transformer_inf") == Pids{101});
  CHECK(procfs.find_by_name("pytho").empty());
  CHECK(procfs.find_by_name("").empty());

  SECTION("a circle, as reused pids could make one, ends") {
    proc.write("30/stat", stat_line(30, "cudabpf", 101, 1));
    CHECK(procfs.ancestors(101) == Pids{30});
    CHECK(procfs.ancestors(30) == Pids{101});
  }
  SECTION("a parent that is gone ends the walk") {
    fs::remove_all(proc.path() / "100");
    CHECK(procfs.ancestors(101) == Pids{30, 100});
  }
}

TEST_CASE("This process, as the real /proc has it") {
  if (!fs::exists("/proc/self/stat")) SKIP("no /proc here");
  Procfs procfs;
  ProcessIdentity self = procfs.process(getpid());
  CHECK(self.ppid == getppid());
  CHECK(self.uid == getuid());
  CHECK(self.exe == fs::read_symlink("/proc/self/exe"));
  CHECK_FALSE(self.args.empty());
  CHECK_FALSE(self.comm.empty());
  REQUIRE_FALSE(self.ns_pids.empty());
  CHECK(self.ns_pids.back() == getpid());
  CHECK(self.start_ns > 0);
  CHECK(self.start_ns < now_ns(CLOCK_BOOTTIME));

  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  auto parents = procfs.parents();
  CHECK(std::find(parents.begin(), parents.end(), std::pair(child, getpid())) != parents.end());
  std::vector<pid_t> ancestors = procfs.ancestors(child);
  REQUIRE_FALSE(ancestors.empty());
  CHECK(ancestors.front() == getpid());
  kill(child, SIGKILL);
  // Dead but not waited for: no memory, no program, but still there.
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  ProcessIdentity zombie = procfs.process(child);
  CHECK(zombie.ppid == getpid());
  CHECK(zombie.args.empty());
  CHECK(zombie.exe.empty());
  CHECK(procfs.maps(child).empty());
  waitpid(child, nullptr, 0);
}

TEST_CASE("Odd names of mapped files come back through the real /proc") {
  if (!fs::exists("/proc/self/maps")) SKIP("no /proc here");
  TemporaryFolder folder;
  for (const char* name : {"plain", "a b", "new\nline", "back\\slash\\040", "gone"}) {
    CAPTURE(name);
    fs::path path = folder.path() / name;
    folder.write(name, std::string(4096, 'x'));
    FILE* file = fopen(path.c_str(), "rb");
    REQUIRE(file != nullptr);
    void* address = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    REQUIRE(address != MAP_FAILED);
    fclose(file);
    bool gone = std::string_view(name) == "gone";
    if (gone) fs::remove(path);

    const Mapping* found = nullptr;
    std::vector<Mapping> mappings = Procfs().maps(getpid());
    for (const Mapping& mapping : mappings) {
      if (mapping.start == reinterpret_cast<std::uint64_t>(address)) found = &mapping;
    }
    REQUIRE(found != nullptr);
    CHECK(found->path == path);
    CHECK(found->perms == "r--p");
    munmap(address, 4096);
  }
}

TEST_CASE("A process whose main thread has ended is read through another") {
  TemporaryFolder folder;
  const char* line = "1000-2000 r-xp 00000000 fe:01 7 /lib/libcuda.so.1\n";
  folder.write("42/maps", "");
  folder.write("42/task/42/maps", "");
  folder.write("42/task/43/maps", line);
  Procfs procfs(folder.path());
  auto maps = procfs.maps(42);
  REQUIRE(maps.size() == 1);
  CHECK(maps[0].path == "/lib/libcuda.so.1");
  CHECK(procfs.maps(99).empty());
}

TEST_CASE("A thread's process and a process's debugger are known") {
  TemporaryFolder folder;
  folder.write("43/status", "Name:\tx\nTgid:\t42\nPid:\t43\nTracerPid:\t7\n");
  Procfs procfs(folder.path());
  CHECK(procfs.process_of(43) == 42);
  CHECK(procfs.tracer(43) == 7);
  CHECK(procfs.process_of(44) == 0);
  CHECK(procfs.tracer(44) == 0);
  CHECK(Procfs().process_of(getpid()) == getpid());
}
