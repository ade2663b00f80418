#include "cudabpf/ioctl.hpp"

#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <random>

#include "cudabpf/abi.h"
#include "support/sample_ioctls.hpp"

using namespace cudabpf;
using namespace sample;

TEST_CASE("What concerns the GPU's scheduler is known as such") {
  for (std::uint32_t number :
       {0xa06c0101u, 0xa06f0103u, 0xa06c0103u, 0xa06c0104u, 0xa06c0105u, 0xa06c0107u, 0xa06c0108u,
        0xa06f0109u, 0xa06f0111u, 0xa06f0112u, 0x2080110bu, 0x20801115u, 0x20801210u, 0x20801211u,
        0x20800194u, 0x20800195u, 0x00801714u, 0x00000283u}) {
    CAPTURE(number);
    CHECK(control(number, V580).group == DriverGroup::scheduling);
  }
  for (std::uint32_t number : {0xa16f0103u, 0xa26f0103u, 0xb06f0103u, 0xc06f0103u, 0xc36f0103u,
                               0x00801709u, 0x0080170bu, 0x0080170cu})
    CHECK(control(number, V535).group == DriverGroup::scheduling);
  CHECK(describe_ioctl(escape_words(0x41, Bytes(56)), V580).group == DriverGroup::scheduling);

  CHECK(control(0xc36f0108, V580).group == DriverGroup::channel);  // a doorbell's token
  CHECK(control(0x20800301, V580).group == DriverGroup::event);
  CHECK(control(0x0000012b, V580).group == DriverGroup::peer);
  CHECK(control(0x00003d05, V580).group == DriverGroup::peer);
  CHECK(control(0x2080200a, V580).group == DriverGroup::power);
  CHECK(control(0x00de0001, V580).group == DriverGroup::power);
  CHECK(control(0x20800102, V580).group == DriverGroup::query);
  CHECK(allocation(0x00de, V580).group == DriverGroup::power);
  CHECK(allocation(0x503b, V580).group == DriverGroup::peer);
  CHECK(allocation(0x0079, V580).group == DriverGroup::event);
}

TEST_CASE("The few parameters worth a field are read") {
  auto timeslice = control(0xa06c0103, V580, Bytes(8).wide(0, 1000));
  CHECK(timeslice.value == 1000u);
  CHECK(timeslice.value_name == "timeslice_us");
  CHECK_FALSE(timeslice.privileged_firmware);
  CHECK(timeslice.client == 0xc1d00001);
  CHECK(timeslice.object == 0x5c000002u);
  auto preempt = control(0xa06c0105, V580, Bytes(8).word(4, 500));
  CHECK(preempt.value == 500u);
  CHECK(preempt.value_name == "timeout_us");
  CHECK(preempt.privileged_firmware);
  Bytes flags(3);  // NvBools: a byte each
  flags.bytes[0] = std::byte{1};
  CHECK(control(0xa06c0101, V580, flags).value == 1u);
  CHECK(control(0xa06c0101, V580, flags).value_name == "enable");
  CHECK(control(0xa06c0107, V580, Bytes(4).word(0, 2)).value_name == "interleave_level");
  // Not recorded, or not all of it.
  for (std::size_t size : {0u, 1u, 7u}) {
    auto cut = control(0xa06c0103, V580, Bytes(size));
    CHECK_FALSE(cut.value);
    CHECK(cut.value_name.empty());
  }

  auto channel = allocation(0xc86f, V580, Bytes(136).word(16, 1024).word(128, 3));
  CHECK(channel.class_name == "HOPPER_CHANNEL_GPFIFO_A");
  CHECK(channel.group == DriverGroup::channel);
  CHECK(channel.value == 1024u);
  CHECK(channel.value_name == "gpfifo_entries");
  CHECK(channel.parent == 0x5c000002u);
  CHECK(channel.object == 0x5c000003u);
  auto device = allocation(0x80, V580, Bytes(56).word(0, 7));
  CHECK(device.value == 7u);
  CHECK(device.value_name == "device_instance");
  auto group = allocation(0xa06c, V580, Bytes(20).word(12, 1));
  CHECK(group.value == 1u);
  CHECK(group.value_name == "engine_type");
}

TEST_CASE("Sizes of memory are those that the ioctl has") {
  CHECK(allocation(0x40, V580, Bytes(128).wide(64, 2 << 20)).size == 2u << 20);
  CHECK(allocation(0x40, V580, Bytes(71)).size == std::nullopt);
  CHECK(allocation(0x71, V580, Bytes(40).wide(24, 4095)).size == 4096u);

  Bytes system(56);  // NVOS02: a limit, which is one less
  system.word(8, 9).word(12, 0x3e).wide(24, 0x7f0000001000).wide(32, 0xffff);
  auto details = describe_ioctl(escape_words(0x27, system), V580);
  CHECK(details.size == 0x10000u);
  CHECK(details.base == 0x7f0000001000);
  CHECK(details.class_name == "NV01_MEMORY_SYSTEM");
  CHECK(details.group == DriverGroup::memory);
  system.wide(32, ~std::uint64_t{0});  // no length has this limit
  CHECK_FALSE(describe_ioctl(escape_words(0x27, system), V580).size);

  // NVOS32's function selects the member of its union: 2 allocates, 3 frees, 27 describes.
  Bytes heap(184);
  heap.word(0, 1).word(4, 2).word(8, 2).word(40, 0xbad).word(44, 77).wide(88, 1 << 16);
  details = describe_ioctl(escape_words(0x4a, heap), V580);
  CHECK(details.client == 1u);
  CHECK(details.parent == 2u);
  CHECK(details.object == 77u);
  CHECK(details.size == 1u << 16);
  heap.word(8, 3);
  details = describe_ioctl(escape_words(0x4a, heap), V580);
  CHECK(details.object == 77u);
  CHECK_FALSE(details.size);
  heap.word(8, 27).wide(72, 8191);
  details = describe_ioctl(escape_words(0x4a, heap), UNKNOWN);
  CHECK(details.object == 0xbadu);
  CHECK(details.size == 8192u);
  heap.word(8, 5);
  details = describe_ioctl(escape_words(0x4a, heap), V580);
  CHECK(details.client == 1u);
  CHECK_FALSE(details.object);
  CHECK_FALSE(details.size);
  CHECK(escape_status(0x4a, 184, V580) == 20u);
}

TEST_CASE("What the driver wrote is added at return") {
  Bytes before(48);
  before.word(0, 1).word(4, 2).word(12, 0xa06c);
  auto alloc = escape_words(0x2b, before);
  auto details = describe_ioctl(alloc, V580);
  CHECK_FALSE(details.object);  // the driver is to choose
  Bytes after = before;
  after.word(8, 0xcaf00001);
  CHECK(describe_ioctl_return(alloc, after, V580, details) == 0u);
  CHECK(details.object == 0xcaf00001);
  CHECK(details.client == 1u);

  // A failure makes nothing; a warning does.
  details = describe_ioctl(alloc, V580);
  after.word(40, 0x1b);
  CHECK(describe_ioctl_return(alloc, after, V580, details) == 0x1bu);
  CHECK_FALSE(details.object);
  after.word(40, 0x10006);
  CHECK(describe_ioctl_return(alloc, after, V580, details) == 0x10006u);
  CHECK(details.object == 0xcaf00001);

  // Not recorded at return: what the entry said stays.
  before.word(8, 5);
  alloc = escape_words(0x2b, before);
  details = describe_ioctl(alloc, V580);
  CHECK(describe_ioctl_return(alloc, {}, V580, details) == std::nullopt);
  CHECK(details.object == 5u);

  Bytes map(56);
  map.word(0, 1).word(4, 2).word(8, 3).wide(24, 4096);
  auto mapping = escape_words(0x4e, map);
  details = describe_ioctl(mapping, V580);
  CHECK(details.size == 4096u);
  CHECK_FALSE(details.base);
  Bytes mapped = map;
  mapped.wide(32, 0x7f0000000000);
  CHECK(describe_ioctl_return(mapping, mapped, V580, details) == 0u);
  CHECK(details.base == 0x7f0000000000);
  Bytes unmap(32);
  unmap.wide(16, 0x7f0000000000);
  CHECK(describe_ioctl(escape_words(0x4f, unmap), V580).base == 0x7f0000000000);

  // The driver does not write a free's handle.
  Bytes free(16);
  free.word(8, 6);
  details = describe_ioctl(escape_words(0x29, free), V580);
  Bytes freed = free;
  freed.word(8, 7);
  CHECK(describe_ioctl_return(escape_words(0x29, free), freed, V580, details) == 0u);
  CHECK(details.object == 6u);
}

TEST_CASE("What no table knows has a number and nothing else") {
  Bytes structure(32);
  for (std::size_t at = 0; at < 32; at += 4) structure.word(at, 0x5c000001);
  auto check_bare = [&](const IoctlWords& ioctl, std::uint32_t number) {
    CAPTURE(ioctl.command);
    for (const DriverVersion& version : {V580, UNKNOWN}) {
      auto details = describe_ioctl(ioctl, version);
      CHECK(details.number == number);
      CHECK(details.name.empty());
      CHECK(details.group == DriverGroup::other);
      CHECK((!details.client && !details.parent && !details.object && !details.size &&
             !details.base && !details.value && !details.control && !details.klass));
      CHECK(describe_ioctl_return(ioctl, structure, version, details) == std::nullopt);
    }
  };
  check_bare(escape_words(0x26, structure), 0x26);
  check_bare(escape_words(0xff, structure), 0xff);
  auto ioctl = escape_words(0x2a, structure);
  ioctl.command ^= 0x100;  // 'G'
  check_bare(ioctl, 0x2a);
  ioctl = wrapped(0x12a, 32);  // no escape has more than a byte
  ioctl.structure = structure;
  check_bare(ioctl, 0x12a);
  check_bare(uvm_words(200, structure), 200);
  check_bare(uvm_words(0x30000003, structure), 0x30000003);
  check_bare(uvm_words(escape(0x2a, 32), structure), escape(0x2a, 32));
  for (auto node : {DriverNode::modeset, DriverNode::caps, DriverNode::other})
    check_bare(words(node, escape(0x2a, 32), structure), escape(0x2a, 32));

  auto details = control(0x12345678, V580);
  CHECK(details.name == "NV_ESC_RM_CONTROL");
  CHECK(details.control == 0x12345678u);
  CHECK(details.control_name.empty());
  CHECK(details.group == DriverGroup::other);
  details = allocation(0xfefe, V580, Bytes(136));
  CHECK(details.klass == 0xfefeu);
  CHECK(details.class_name.empty());
  CHECK_FALSE(details.size);
  // A struct of a size that this number never had.
  details = describe_ioctl(escape_words(0x2a, Bytes(36)), V580);
  CHECK(details.name == "NV_ESC_RM_CONTROL");
  CHECK_FALSE(details.control);
  // A wrapper that was not read at all.
  details = describe_ioctl(escape_words(0xd3, Bytes(16)), V580);
  CHECK(details.name == "NV_ESC_IOCTL_XFER_CMD");
}

TEST_CASE("Any bytes are accepted") {
  std::mt19937 random(7);
  const DriverVersion versions[] = {UNKNOWN, V470, V515, V530, V550, V570, V580, V590, V610};
  for (int i = 0; i < 20000; i++) {
    Bytes structure(random() % (CB_MAX_IOCTL + 1)), parameters(random() % (CB_MAX_PARAMS + 1));
    for (std::byte& byte : structure.bytes) byte = static_cast<std::byte>(random());
    for (std::byte& byte : parameters.bytes) byte = static_cast<std::byte>(random());
    auto command = random() % 2 ? escape(random() % 256, structure.bytes.size())
                                : static_cast<std::uint32_t>(random() % 100);
    IoctlWords ioctl = words(static_cast<DriverNode>(random() % 7), command, structure, parameters);
    if (random() % 4 == 0) {
      ioctl.inner = random() % 300;
      ioctl.inner_size = static_cast<std::uint32_t>(random());
    }
    const DriverVersion& version = versions[random() % std::size(versions)];
    IoctlDetails details = describe_ioctl(ioctl, version);
    CHECK(details.value.has_value() == !details.value_name.empty());
    describe_ioctl_return(ioctl, structure, version, details);
  }
}
