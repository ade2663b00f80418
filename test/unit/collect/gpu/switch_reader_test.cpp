#include "collect/gpu/switch_reader.hpp"

#include <linux/capability.h>

#include <catch2/catch_test_macros.hpp>
#include <random>
#include <thread>

#include "collect/gpu/scripted_rm.hpp"
#include "cudabpf/driver_tables.hpp"
#include "support/units.hpp"
#include "util/system/privileges.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

// Beside clocks that do not agree, which are hours apart: a machine with other work may take long.
constexpr std::uint64_t SOON = 20 * SECOND;

constexpr LoadedDriver TRIED{"580.159.04", true};
constexpr const char* BUS_ID = "00000000:3b:00.0";

void need_root() {
  if (!privileges::effective().has(CAP_SYS_ADMIN)) SKIP("this takes CAP_SYS_ADMIN");
}

std::unique_ptr<SwitchReader> open_scripted(RmScript as = {}) {
  auto reader = SwitchReader::open(scripted_rm(std::move(as)), TRIED);
  REQUIRE(reader);
  return std::move(*reader);
}

std::string why_not(RmScript as, LoadedDriver driver = TRIED) {
  auto reader = SwitchReader::open(scripted_rm(std::move(as)), driver);
  REQUIRE_FALSE(reader);
  CHECK(rm_script.clients == 0);
  return reader.error().message;
}

std::string why_not_followed(SwitchReader& reader) {
  auto followed = reader.follow(true);
  REQUIRE_FALSE(followed);
  return followed.error().message;
}

}  // namespace

TEST_CASE("The resource manager's numbers are those of the driver's tables") {
  DriverVersion version = DriverVersion::parse(TRIED.version);
  auto name = [&](const auto& rows) {
    const auto* row = row_at(rows, version);
    return row ? row->named.name : std::string_view();
  };
  auto escape = [&](rm::Escape number) { return name(escape_rows(static_cast<unsigned>(number))); };
  auto object = [&](rm::Class number) {
    return name(class_rows(static_cast<std::uint32_t>(number)));
  };
  auto control = [&](rm::Control number) {
    return name(control_rows(static_cast<std::uint32_t>(number)));
  };
  CHECK(escape(rm::Escape::free) == "NV_ESC_RM_FREE");
  CHECK(escape(rm::Escape::control) == "NV_ESC_RM_CONTROL");
  CHECK(escape(rm::Escape::alloc) == "NV_ESC_RM_ALLOC");
  CHECK(escape(rm::Escape::map_memory) == "NV_ESC_RM_MAP_MEMORY");
  CHECK(escape(rm::Escape::card_info) == "NV_ESC_CARD_INFO");
  CHECK(escape(rm::Escape::register_fd) == "NV_ESC_REGISTER_FD");
  CHECK(object(rm::Class::root_client) == "NV01_ROOT_CLIENT");
  CHECK(object(rm::Class::device) == "NV01_DEVICE_0");
  CHECK(object(rm::Class::subdevice) == "NV20_SUBDEVICE_0");
  CHECK(object(rm::Class::event_buffer) == "NV_EVENT_BUFFER");
  CHECK(object(rm::Class::memory_deviceless) == "NV01_MEMORY_DEVICELESS");
  CHECK(control(rm::Control::gpu_id_info) == "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2");
  CHECK(control(rm::Control::time_correlation) ==
        "NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO");
  CHECK(control(rm::Control::bind_switches) == "NV2080_CTRL_CMD_GR_FECS_BIND_EVTBUF_FOR_UID_V2");
  CHECK(control(rm::Control::enable_events) == "NV_EVENT_BUFFER_CTRL_CMD_ENABLE_EVENTS");
  CHECK(control(rm::Control::update_get) == "NV_EVENT_BUFFER_CTRL_CMD_UPDATE_GET");
  CHECK(control(rm::Control::flush) == "NV_EVENT_BUFFER_CTRL_CMD_FLUSH");
}

TEST_CASE("Which process has a GPU is read from the ring, in the trace's clock") {
  need_root();
  auto reader = open_scripted({.cards = 2});
  CHECK_FALSE(reader->take("00000000:AF:00.0"));
  ScriptedRing ring(1);
  std::uint64_t begin = rm_script.gpu_now();
  std::uint64_t monotonic = now_ns(CLOCK_MONOTONIC);
  ring.record(begin, rm::CONTEXT_STARTS, 42);
  ring.record(begin + 2 * MS, rm::CONTEXT_ENDS, 42);
  ring.record(begin + 2 * MS, rm::CONTEXT_STARTS, rm::DRIVERS_OWN_PID);
  ring.record(begin + 3 * MS, rm::CONTEXT_ENDS, rm::DRIVERS_OWN_PID);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  REQUIRE(reader->follow(true));
  CHECK(rm_script.requests[rm::Control::flush] == 1);
  CHECK(rm_script.updated_get == 4);
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  auto taken = reader->take("00000000:3C:00.0");
  REQUIRE(taken);
  const GpuResidents residents = taken->residents;
  REQUIRE(residents.processes.size() == 2);
  CHECK(residents.processes[0].pid == 0);
  CHECK(residents.processes[0].ns == MS);
  CHECK(residents.processes[1].pid == 42);
  CHECK(residents.processes[1].ns == 2 * MS);
  CHECK(residents.from < monotonic);
  CHECK(residents.unknown_ns < SOON);  // between the opening and the first record
  CHECK(residents.to < now - MS);      // what is newer may not be recorded yet
  CHECK(residents.to > now - SOON);
  CHECK(taken->missing == 0);
  REQUIRE(reader->follow(true));
  taken = reader->take("00000000:3C:00.0");
  CHECK(taken->residents.from == residents.to);
  CHECK(taken->residents.processes.empty());
  CHECK(taken->residents.unknown_ns == 0);
  reader.reset();
  CHECK(rm_script.clients == 0);
}

TEST_CASE("The ring wraps around, and what the driver dropped is counted") {
  need_root();
  auto reader = open_scripted();
  ScriptedRing ring;
  for (int round = 0; round < 4; round++) {
    std::uint64_t time = rm_script.gpu_now();
    for (int i = 0; i < 5000; i++, time += 10) {
      ring.record(time, rm::CONTEXT_STARTS, 42);
      ring.record(time + 5, rm::CONTEXT_ENDS, 42);
    }
    REQUIRE(reader->follow(true));
  }
  CHECK(ring.header.put == 40'000 % 16384);
  CHECK(rm_script.updated_get == ring.header.put);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  ring.header.dropped = 9;
  ring.publish();
  REQUIRE(reader->follow(true));
  auto taken = reader->take(BUS_ID);
  REQUIRE(taken);
  CHECK(taken->missing == 9);
  REQUIRE(taken->residents.processes.size() == 1);
  CHECK(taken->residents.processes[0].ns == 4 * 5000 * 5);
}

TEST_CASE("Where switches cannot be recorded the failing step is named") {
  need_root();
  CHECK(why_not({}, {"", false}) == "no NVIDIA driver is loaded");
  CHECK(why_not({}, {"580.159.04", false}) ==
        "the driver is 580.159.04, proprietary; only the open kernel module 580 was tried");
  CHECK(why_not({}, {"595.45.04", true}) ==
        "the driver is 595.45.04; only the open kernel module 580 was tried");
  CHECK(why_not({.missing_node = "/dev/nvidiactl"}) == "/dev/nvidiactl: No such file or directory");
  CHECK(why_not({.missing_node = "/dev/nvidia0"}) == "/dev/nvidia0: No such file or directory");
  CHECK(why_not({.cards = 0}) == "the driver lists no GPU");
  CHECK(why_not({.class_status = {{rm::Class::root_client, 0x1b}}}) ==
        "making a client failed (NV status 0x1b)");
  CHECK(why_not({.class_status = {{rm::Class::event_buffer, 0x56}}}) ==
        "making the event buffer failed (NV status 0x56)");
  CHECK(why_not({.control_status = {{rm::Control::bind_switches, 0x1b}}}) ==
        "asking for context switches failed (NV status 0x1b)");
  CHECK(why_not({.cpu_wrong_ns = 1'000'000'000}) ==
        "reading the GPU's clock failed (the driver has other clocks)");
}

TEST_CASE("GPUs without a device of their own here are left alone") {
  need_root();
  auto reader = open_scripted({.missing_node = "/dev/nvidia0", .cards = 2});
  REQUIRE(reader->follow(true));
  CHECK_FALSE(reader->take(BUS_ID));
  CHECK(reader->take("00000000:3C:00.0"));
}

TEST_CASE("A driver that refuses later says so") {
  need_root();
  auto reader = open_scripted();
  rm_script.control_status[rm::Control::flush] = 0x1b;
  CHECK(why_not_followed(*reader) == "asking for what was recorded failed (NV status 0x1b)");
  rm_script.control_status = {{rm::Control::update_get, 0x40}};
  ScriptedRing ring;
  ring.record(rm_script.gpu_now(), rm::CONTEXT_STARTS, 42);
  CHECK(why_not_followed(*reader) == "giving records back failed (NV status 0x40)");
}

TEST_CASE("Whatever is in the ring, no more time is reported than has passed") {
  need_root();
  auto reader = open_scripted();
  ScriptedRing ring;
  std::mt19937_64 random(20261125);
  std::uint64_t reported_until = 0;
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 200; i++) {
      rm::Record record{};
      std::uint64_t bits = random();
      record.type = bits % 8 ? rm::CONTEXT_SWITCH : static_cast<std::uint16_t>(bits);
      record.tag = static_cast<std::uint8_t>(bits >> 8 & 1 ? 6 : bits >> 16);
      record.seqno = static_cast<std::uint16_t>(bits >> 24);
      record.pid = static_cast<std::uint32_t>(bits >> 32 & 3);
      record.gpu_instance = record.compute_instance = bits >> 40 & 1 ? 0xff : 0;
      record.time = bits >> 41 & 1 ? rm_script.gpu_now() - (random() % MS) : random();
      ring.write(record);
    }
    REQUIRE(reader->follow(true));
    auto taken = reader->take(BUS_ID);
    REQUIRE(taken);
    const GpuResidents& residents = taken->residents;
    CHECK(residents.from >= reported_until);
    CHECK(residents.to >= residents.from);
    reported_until = residents.to;
    std::uint64_t sum = residents.unknown_ns;
    for (const GpuResident& process : residents.processes) sum += process.ns;
    CHECK(sum <= residents.to - residents.from + MS);  // two clocks
  }
  ring.header.put = 16384;
  ring.publish();
  CHECK(why_not_followed(*reader) == "reading the ring failed (it has no place 16384)");
}
