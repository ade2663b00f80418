// A folder of the shape of /proc, with processes in it, for the tests of callers and targets.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_folder.hpp"
#include "util/system/procfs.hpp"

struct SampleProcesses : TemporaryFolder {
  void add(pid_t pid, pid_t parent, std::string_view comm, uid_t uid = 0) const {
    std::string number = std::to_string(pid);
    write(number + "/stat",
          number + " (" + std::string(comm) + ") S " + std::to_string(parent) + " 1 1 0 -1\n");
    write(number + "/status",
          "Tgid:\t" + number + "\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
  }
  void set_environment(pid_t pid, const std::vector<std::string>& variables) const {
    std::string text;
    for (const std::string& variable : variables) text += variable + '\0';
    write(std::to_string(pid) + "/environ", text);
  }
  void set_cgroup(pid_t pid, std::string_view path) const {
    write(std::to_string(pid) + "/cgroup", "0::" + std::string(path) + "\n");
  }
  cudabpf::Procfs procfs() const { return cudabpf::Procfs(path().string()); }
};
