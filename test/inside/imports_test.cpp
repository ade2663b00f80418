// A library's operations on the driver by libc's functions, seen at its imports.
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "traced_process.hpp"

using namespace cudabpf;

namespace {

using CallDriver = int(const char* device, unsigned long command, void* argument);

CallDriver* driver_caller() {
  void* library = dlopen(CALLING_DRIVER, RTLD_NOW);
  REQUIRE(library);
  auto* call_driver = reinterpret_cast<CallDriver*>(dlsym(library, "call_driver"));
  REQUIRE(call_driver);
  calling_watches_imports(reinterpret_cast<const void*>(call_driver));
  return call_driver;
}

// /dev/null takes the place of a device of the driver; it knows no ioctl.
abi::ci_driver driver_on_null() {
  struct stat status {};
  REQUIRE(stat("/dev/null", &status) == 0);
  abi::ci_driver driver{};
  driver.recorded = 1;
  driver.devices[0] = {major(status.st_rdev) << 20 | minor(status.st_rdev), ~0u, abi::CB_NODE_RM};
  driver.escape_plans[0x2a].follow_at = 16;
  driver.escape_plans[0x2a].follow_size_at = 24;
  driver.escape_plans[0x2a].follow_max = CB_MAX_PARAMS;
  return driver;
}

struct Control {  // NVOS54_PARAMETERS
  std::uint32_t client, object, command, flags;
  std::uint64_t parameters;
  std::uint32_t size, status;
};
constexpr unsigned long CONTROL = 0xc020462a, INDIRECT = 0xc01046d3;

abi::cb_driver beginning_of(const Record& record) {
  abi::cb_driver operation{};
  operation.head = record.head;
  std::memcpy(reinterpret_cast<char*>(&operation) + sizeof(operation.head), record.words.data(),
              sizeof(operation) - sizeof(operation.head));
  return operation;
}

}  // namespace

TEST_CASE("Each operation on a device of the driver is recorded, and others are not") {
  TracedProcess process(driver_on_null());
  CallDriver* call_driver = driver_caller();
  std::uint64_t parameters[3] = {1, 2, 3};
  Control control{
      0xc1d00001,         0x5c000002, 0xa06c0101, 0, reinterpret_cast<std::uint64_t>(parameters),
      sizeof(parameters), 0};
  CHECK(call_driver("/dev/zero", CONTROL, &control) == -ENOTTY);
  CHECK(process.read_all().empty());
  CHECK(call_driver("/dev/null", CONTROL, &control) == -ENOTTY);
  auto records = process.read_all();
  const std::uint16_t OPERATIONS[] = {abi::CB_OPEN, abi::CB_IOCTL, abi::CB_POLL, abi::CB_MMAP,
                                      abi::CB_CLOSE};
  REQUIRE(records.size() == 2 * std::size(OPERATIONS));
  for (std::size_t i = 0; i < records.size(); i++) {
    CHECK(records[i].head.function == OPERATIONS[i / 2]);
    CHECK(records[i].head.kind == (i % 2 ? abi::CB_DRIVER_RETURN : abi::CB_DRIVER));
  }
  auto ioctl = beginning_of(records[2]);
  CHECK(ioctl.command == CONTROL);
  REQUIRE(ioctl.head.struct_size == sizeof(control));
  CHECK(std::memcmp(ioctl.structure, &control, sizeof(control)) == 0);
  REQUIRE(ioctl.head.string_size == sizeof(parameters));
  CHECK(std::memcmp(ioctl.parameters, parameters, sizeof(parameters)) == 0);
  CHECK(static_cast<std::int64_t>(records[3].words[0]) == -ENOTTY);
}

TEST_CASE("Structs that cannot be read, or say nonsense of themselves, are faults") {
  TracedProcess process(driver_on_null());
  CallDriver* call_driver = driver_caller();
  auto recorded = [&](unsigned long command, void* argument) {
    call_driver("/dev/null", command, argument);
    return beginning_of(process.read_all()[2]);
  };
  CHECK(recorded(CONTROL, nullptr).head.flags == abi::CB_READ_FAULT);
  Control control{};
  control.parameters = 8;
  control.size = 0xffffffff;
  CHECK(recorded(CONTROL, &control).head.flags == abi::CB_READ_FAULT);
  // Through another ioctl, which names the struct and its size.
  struct {
    std::uint32_t number, size;
    std::uint64_t at;
  } through{0x2a, sizeof(control), reinterpret_cast<std::uint64_t>(&control)};
  control.parameters = 0;
  auto operation = recorded(INDIRECT, &through);
  CHECK(operation.head.flags == abi::CB_INDIRECT);
  CHECK(operation.inner == 0x2a);
  CHECK(operation.head.struct_size == sizeof(control));
  through.size = 0xffffffff;
  CHECK(recorded(INDIRECT, &through).head.struct_size == 0);
  through.size = sizeof(control);
  through.at = 8;
  CHECK(recorded(INDIRECT, &through).head.flags == (abi::CB_INDIRECT | abi::CB_READ_FAULT));
  CHECK(recorded(INDIRECT, reinterpret_cast<void*>(8)).head.flags == abi::CB_READ_FAULT);
}
