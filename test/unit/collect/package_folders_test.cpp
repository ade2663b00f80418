#include "collect/package_folders.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

std::vector<std::string> folders(std::vector<std::string> args, std::string exe,
                                 const std::vector<std::string>& environment = {}) {
  ProcessIdentity process;
  process.args = std::move(args);
  process.exe = std::move(exe);
  return package_folders(process, environment);
}

bool has(const std::vector<std::string>& all, const std::string& folder) {
  return std::count(all.begin(), all.end(), folder) == 1;
}

}  // namespace

TEST_CASE("A Python's packages are beside it, and beside the link that an environment has to it") {
  auto of = folders({"/opt/venv/bin/python"}, "/usr/bin/python3.12", {"HOME=/home/a"});
  CHECK(has(of, "/opt/venv/lib/python3.12/site-packages/nvidia/nccl/lib"));
  CHECK(has(of, "/usr/lib/python3.12/dist-packages/nvidia/nccl/lib"));
  CHECK(has(of, "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib"));
  CHECK(has(of, "/home/a/.local/lib/python3.12/site-packages/nvidia/nccl/lib"));
}

TEST_CASE("An environment may also be known by its variables, or by PATH") {
  const std::string folder = "/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib";
  for (const char* variable : {"VIRTUAL_ENV=/opt/venv", "CONDA_PREFIX=/opt/venv",
                               "PATH=/opt/venv/bin:/usr/local/bin:/usr/bin"})
    CHECK(has(folders({"python"}, "/usr/bin/python3.11", {variable}), folder));
  CHECK_FALSE(has(folders({"python"}, "/usr/bin/python3.11"), folder));
}

TEST_CASE("Only a Python has Python's packages, and no variables make endless work") {
  CHECK(folders({"/opt/venv/bin/python"}, "/usr/bin/perl").empty());
  CHECK(folders({"python3.12"}, "/usr/bin/python3.12-config").empty());
  CHECK(folders({}, "").empty());
  std::string path = "PATH=";
  for (int i = 0; i < 5000; i++) path += "/" + std::to_string(i) + "/bin:";
  CHECK(folders({"python"}, "/usr/bin/python3.12", {path}).size() < 256);
}
