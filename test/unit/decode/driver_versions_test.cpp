// What differs between versions of the driver.
#include <catch2/catch_test_macros.hpp>

#include "cudabpf/abi.h"
#include "cudabpf/ioctl.hpp"
#include "support/sample_ioctls.hpp"

using namespace cudabpf;
using namespace sample;

TEST_CASE("A driver's version is read from its text") {
  CHECK(DriverVersion::parse("580.159.04") == V580);
  CHECK(DriverVersion::parse("570.144") == DriverVersion{570, 144, 0});
  CHECK(DriverVersion::parse("610") == DriverVersion{610, 0, 0});
  CHECK(V580.known());
  for (auto text : {"", ".", "580.", "580..1", "580.1.2.3", "580.1.2.", "x", "580.x", "-1.2",
                    " 580", "580 ", "65536.1.1", "580.99999999999999999999.1", "0"}) {
    CAPTURE(text);
    CHECK_FALSE(DriverVersion::parse(text).known());
  }
}

TEST_CASE("The status of an allocation lies where size and version say") {
  struct Case {
    std::size_t size;
    DriverVersion version;
    std::optional<std::uint32_t> at;
  };
  for (const Case& wanted : std::initializer_list<Case>{
           // NVOS21 had no paramsSize before 535.
           {32, V470, 24},
           {32, V530, 24},
           {32, {535, 43, 1}, 24},
           {32, {535, 43, 2}, 28},
           {32, V535, 28},
           {32, V595, 28},
           {32, UNKNOWN, std::nullopt},
           // NVOS64 grew in two steps.
           {40, V515, 32},
           {40, V525, 36},
           {40, V530, 36},
           {40, V535, std::nullopt},
           {40, UNKNOWN, std::nullopt},
           {48, V535, 40},
           {48, V580, 40},
           {48, UNKNOWN, 40},
           {48, V530, std::nullopt},
           {44, V580, std::nullopt},
           {0, V580, std::nullopt},
       }) {
    CAPTURE(wanted.size, wanted.version.major, wanted.version.minor);
    CHECK(escape_status(0x2b, wanted.size, wanted.version) == wanted.at);
  }
}

TEST_CASE("Structs that changed are read as their version has them") {
  // NVOS46 of MAP_MEMORY_DMA, NVOS47 of UNMAP_MEMORY_DMA
  CHECK(escape_status(0x57, 56, V575) == 48u);
  CHECK(escape_status(0x57, 64, V580) == 56u);
  CHECK(escape_status(0x57, 56, V580) == std::nullopt);
  CHECK(escape_status(0x57, 64, UNKNOWN) == 56u);  // the size alone shows it
  CHECK(escape_status(0x57, 56, UNKNOWN) == 48u);
  CHECK(escape_status(0x58, 40, V535) == 32u);
  CHECK(escape_status(0x58, 48, V550) == 40u);
  CHECK(escape_status(0xd9, 2600, V550) == 2592u);
  CHECK(escape_status(0xd9, 2608, V580) == 2600u);
  Bytes map(64);
  map.wide(24, 1 << 20).wide(40, 0xbad).wide(48, 0x7f1200000000);
  IoctlDetails details = describe_ioctl(escape_words(0x57, map), V580);
  CHECK(details.size == 1u << 20);
  CHECK(details.base == 0x7f1200000000);

  // UVM_FREE lost its length at 590.
  Bytes free(24);
  free.wide(0, 0x7f0000000000).wide(8, 4096);
  details = describe_ioctl(uvm_words(34, free), V580);
  CHECK(details.base == 0x7f0000000000);
  CHECK(details.size == 4096u);
  CHECK(uvm_status(34, 24, V580) == 16u);
  details = describe_ioctl(uvm_words(34, free), V590);
  CHECK(details.base == 0x7f0000000000);
  CHECK_FALSE(details.size);
  CHECK(uvm_status(34, 16, V590) == 8u);
  // What all versions agree on also holds for an unknown version.
  details = describe_ioctl(uvm_words(34, free), UNKNOWN);
  CHECK(details.name == "UVM_FREE");
  CHECK(details.base == 0x7f0000000000);
  CHECK_FALSE(details.size);
  CHECK(uvm_status(34, 24, UNKNOWN) == std::nullopt);

  // 32 GPUs became 256 within the 550 branch.
  CHECK(uvm_status(33, 9264, {550, 40, 7}) == 1196u);
  CHECK(uvm_status(33, 9264, {550, 40, 52}) == 1196u);
  CHECK(uvm_status(33, 9264, {550, 40, 53}) == 9260u);
  CHECK(uvm_status(33, 9264, V550) == 9260u);
  CHECK(uvm_status(33, CB_MAX_IOCTL, V550) == std::nullopt);  // as it is recorded
  CHECK(uvm_status(42, 40, V535) == 32u);
  CHECK(uvm_status(42, 40, V550) == 36u);
  CHECK(uvm_status(28, 28, V580) == 24u);
  CHECK(uvm_status(28, 28, V590) == 8u);
  CHECK(uvm_status(80, 32, V580) == 24u);
  CHECK(uvm_status(80, 32, V575) == std::nullopt);
}

TEST_CASE("A name is that of the version") {
  CHECK(control(0x20800ac3, {535, 43, 2}).control_name ==
        "NV2080_CTRL_CMD_INTERNAL_FBSR_SEND_REGION_INFO");
  CHECK(control(0x20800ac3, V580).control_name ==
        "NV2080_CTRL_CMD_INTERNAL_FIFO_TOGGLE_ACTIVE_CHANNEL_SCHEDULING");
  CHECK(control(0x20800ac3, UNKNOWN).group == DriverGroup::scheduling);
  CHECK(control(0x2080132a, V580).control_name == "NV2080_CTRL_CMD_FB_STATS_GET");
  CHECK(control(0x2080132a, V610).control_name == "NV2080_CTRL_CMD_GSP_FB_STATS_GET");
  CHECK(control(0xc36f0103, V535).control_name == "NVC36F_CTRL_CMD_GPFIFO_SCHEDULE");
  CHECK(control(0xc36f0103, V580).control_name.empty());
  CHECK(control(0xc36f0103, UNKNOWN).control_name == "NVC36F_CTRL_CMD_GPFIFO_SCHEDULE");
  auto name = [](std::uint32_t number, const DriverVersion& version) {
    return describe_ioctl(words(DriverNode::gpu, escape(number, 8)), version).name;
  };
  CHECK(name(0x5f, V530) == "NV_ESC_RM_NVLOG_CTRL");
  CHECK(name(0x5f, V550) == "NV_ESC_RM_LOCKLESS_DIAGNOSTIC");
  CHECK(name(0x5f, UNKNOWN) == "NV_ESC_RM_LOCKLESS_DIAGNOSTIC");
  CHECK(name(0xd5, V580) == "NV_ESC_QUERY_DEVICE_INTR");
  CHECK(name(0xd5, V590).empty());
  CHECK(name(0xda, V535).empty());
  CHECK(name(0xda, V550) == "NV_ESC_WAIT_OPEN_COMPLETE");
  auto uvm_name = [](std::uint32_t number, const DriverVersion& version) {
    return describe_ioctl(uvm_words(number, {}), version).name;
  };
  CHECK(uvm_name(23, V595) == "UVM_CREATE_RANGE_GROUP");
  CHECK(uvm_name(23, V610).empty());
  CHECK(uvm_name(75, V530).empty());
  CHECK(uvm_name(75, V535) == "UVM_MM_INITIALIZE");
  CHECK(uvm_name(0x30000001, V470) == "UVM_INITIALIZE");
}
