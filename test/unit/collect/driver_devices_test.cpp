#include "collect/driver_devices.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

constexpr std::uint32_t device(std::uint32_t major, std::uint32_t minor) {
  return major << 20 | minor;
}

constexpr const char* PROC_DEVICES =
    "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n238 nvidia-uvm\n239 nvidia-nvswitch\n"
    "241 nvidia-caps\n\nBlock devices:\n  8 sd\n240 nvidia-not-a-character-device\n";

}  // namespace

TEST_CASE("The driver's devices, by their numbers") {
  auto devices = DriverDevices::parse(PROC_DEVICES, "");
  CHECK(devices.name(device(195, 255)) == "nvidiactl");
  CHECK(devices.node(device(195, 255)) == DriverNode::ctl);
  CHECK(devices.name(device(195, 254)) == "nvidia-modeset");
  CHECK(devices.node(device(195, 254)) == DriverNode::modeset);
  CHECK(devices.name(device(195, 0)) == "nvidia0");
  CHECK(devices.name(device(195, 17)) == "nvidia17");
  CHECK(devices.node(device(195, 17)) == DriverNode::gpu);
  CHECK(devices.name(device(238, 0)) == "nvidia-uvm");
  CHECK(devices.node(device(238, 0)) == DriverNode::uvm);
  CHECK(devices.name(device(238, 1)) == "nvidia-uvm-tools");
  CHECK(devices.node(device(238, 1)) == DriverNode::uvm_tools);
  CHECK(devices.name(device(241, 3)) == "nvidia-caps/3");
  CHECK(devices.node(device(241, 3)) == DriverNode::caps);
  CHECK(devices.name(device(239, 0)) == "nvidia-nvswitch/0");
  CHECK(devices.name(device(1, 3)).empty());
  CHECK(devices.name(device(240, 0)).empty());
  CHECK(devices.name(0).empty());
}

TEST_CASE("The first major is fixed; the others come with their modules") {
  auto devices = DriverDevices::parse("", "");
  CHECK(devices.name(device(195, 255)) == "nvidiactl");
  CHECK(devices.name(device(238, 0)).empty());
  CHECK_FALSE(devices == DriverDevices::parse(PROC_DEVICES, ""));
  CHECK(devices == DriverDevices::parse("195 nvidia-frontend\n", ""));
}

TEST_CASE("Other devices may take the place of the driver's") {
  auto devices = DriverDevices::parse(PROC_DEVICES, "1:3=nvidiactl,nonsense,1=x,1:5=nvidia-uvm");
  CHECK(devices.name(device(1, 3)) == "nvidiactl");
  CHECK(devices.node(device(1, 3)) == DriverNode::ctl);
  CHECK(devices.node(device(1, 5)) == DriverNode::uvm);
  CHECK(devices.name(device(1, 7)).empty());
}

TEST_CASE("The kernel side's list ends with an empty one, however many there are") {
  std::string many;
  for (int i = 0; i < 100; i++) many += std::to_string(i) + ":0=nvidia0,";
  for (const auto& devices :
       {DriverDevices::parse("", ""), DriverDevices::parse(PROC_DEVICES, many)}) {
    auto list = devices.for_kernel_side();
    CHECK(list.size() <= CB_DRIVER_DEVICES);
    CHECK(list.back().node == abi::CB_NODE_NONE);
    for (std::size_t i = 0; i + 1 < list.size(); i++) CHECK(list[i].node != abi::CB_NODE_NONE);
  }
}
