#include "collect/machine.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/temporary_folder.hpp"

using namespace cudabpf;

namespace {

struct Nvidia : TemporaryFolder {
  Driver driver(std::string_view version) const {
    write("version", version);
    return nvidia_driver(path().string());
  }
  std::vector<Gpu> gpus() const { return nvidia_gpus(path().string()); }
};

}  // namespace

TEST_CASE("The driver reports its version, and whether it is the open one") {
  Nvidia nvidia;
  Driver driver = nvidia.driver(
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@y)  "
      "Tue Mar 10 2026\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  CHECK(driver.version == "580.159.04");
  CHECK(driver.flavour == "open");
  driver = nvidia.driver(
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  545.29  Sun May 12 19:39:15 UTC 2024\n");
  CHECK(driver.version == "545.29");
  CHECK(driver.flavour == "proprietary");
}

TEST_CASE("A driver that is not there, or reports no version, has none") {
  Nvidia nvidia;
  CHECK(nvidia_driver(nvidia.path().string()).version.empty());
  for (const char* text : {"", "\n", "NVRM version: Open Kernel Module\n", "580\n", "58.15\n",
                           "x580.159.04x\n", "5800.159\n", "NVRM\n580.159.04\n"}) {
    CAPTURE(text);
    Driver driver = nvidia.driver(text);
    CHECK(driver.version.empty());
    CHECK(driver.flavour.empty());
  }
}

TEST_CASE("GPUs are listed in the order of their numbers") {
  Nvidia nvidia;
  CHECK(nvidia.gpus().empty());
  nvidia.write("gpus/0000:3b:00.0/information",
               "Model: \t\t NVIDIA H200\nIRQ:   \t\t 30\nGPU UUID: \t GPU-aaaa\n"
               "Video BIOS: \t 96\nDevice Minor: \t 10\n");
  nvidia.write("gpus/0000:d8:00.0/information", "Device Minor: \t 2\nModel: NVIDIA A: B\n");
  auto gpus = nvidia.gpus();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].index == 2);
  CHECK(gpus[0].name == "NVIDIA A: B");
  CHECK(gpus[0].uuid.empty());
  CHECK(gpus[0].bus_id == "0000:d8:00.0");
  CHECK(gpus[1].index == 10);
  CHECK(gpus[1].name == "NVIDIA H200");
  CHECK(gpus[1].uuid == "GPU-aaaa");
  CHECK(gpus[1].bus_id == "0000:3b:00.0");
}

TEST_CASE("A GPU that says little is a GPU all the same") {
  Nvidia nvidia;
  nvidia.write("gpus/0000:0a:00.0/information",
               "Model:\nGPU UUID: \t\nDevice Minor: many\nModels: x\n");
  auto gpus = nvidia.gpus();
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0].bus_id == "0000:0a:00.0");
  CHECK(gpus[0].name.empty());
  CHECK(gpus[0].uuid.empty());
  CHECK(gpus[0].index == 0);
}
