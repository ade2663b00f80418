#include "correlate/learners/driver_calls.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "correlating.hpp"
#include "trace/write/event_lines.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint32_t CTL = 195 << 20 | 255, UVM = 238 << 20;
constexpr std::uint32_t RM_CONTROL = 0xc020462a, RM_ALLOC = 0xc030462b;

Correlator::Options watching() {
  Correlator::Options options;
  options.driver_version = DriverVersion::parse("580.159.04");
  options.driver_device = [](std::uint32_t number) {
    if (number == CTL) return DriverDevice{DriverNode::ctl, "nvidiactl"};
    if (number == UVM) return DriverDevice{DriverNode::uvm, "nvidia-uvm"};
    return DriverDevice{};
  };
  return options;
}

StructBytes control(std::uint32_t command, std::uint32_t status = 0) {
  StructBytes bytes(32);
  bytes.set<std::uint32_t>(0, 0xc1d00001).set<std::uint32_t>(4, 0x5c000002);
  bytes.set(8, command).set(28, status);
  return bytes;
}

}  // namespace

TEST_CASE("An ioctl belongs to the call that its thread is in") {
  Correlating c(watching());
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(driver_begins({.ts = 20}, abi::CB_IOCTL, CTL, RM_CONTROL, control(0x20800101)));
  c.feed(driver_ends({.ts = 50}, abi::CB_IOCTL, 0, control(0x20800101, 0x56)));
  c.feed(driver_begins({.ts = 55, .tid = 101}, abi::CB_IOCTL, UVM, 0x30000001));
  c.feed(driver_ends({.ts = 60, .tid = 101}, abi::CB_IOCTL));
  c.feed(entry({.ts = 70, .sp = 0xf00}, "cuCtxSynchronize"));
  c.feed(driver_begins({.ts = 72}, abi::CB_IOCTL, CTL, RM_CONTROL, control(0x20800101)));
  c.feed(driver_ends({.ts = 73}, abi::CB_IOCTL, 0, control(0x20800101)));
  c.feed(driver_begins({.ts = 74}, abi::CB_MMAP, CTL));
  c.feed(driver_ends({.ts = 75}, abi::CB_MMAP));
  c.feed(returned({.ts = 80, .sp = 0xf00}, "cuCtxSynchronize"));
  c.feed(returned({.ts = 90, .sp = 0x1000}, "cuInit"));
  c.feed(driver_begins({.ts = 95}, abi::CB_CLOSE, CTL));
  c.feed(driver_ends({.ts = 96}, abi::CB_CLOSE));

  const auto& made = c.sink.driver_calls;
  REQUIRE(made.size() == 5);
  CHECK(made[0].call == 1);
  CHECK(made[0].ts == 20);
  CHECK(made[0].duration == 30);
  CHECK(made[0].device == "nvidiactl");
  CHECK(made[0].details.name == "NV_ESC_RM_CONTROL");
  CHECK(made[0].details.control == 0x20800101);
  CHECK(made[0].details.client == 0xc1d00001);
  CHECK(made[0].status == 0x56);
  CHECK(made[1].call == 0);  // another thread's
  CHECK(made[1].tid == 101);
  CHECK(made[1].details.name == "UVM_INITIALIZE");
  CHECK(made[2].call == 2);
  CHECK(made[3].op == DriverCall::Op::mmap);
  CHECK(made[3].call == 2);
  CHECK(made[4].call == 0);
  CHECK(c.correlator.counts().driver_calls == 5);
  // Ioctls inside a call count for the calls around it, too; a mapping is no ioctl.
  REQUIRE(c.sink.calls.size() == 2);
  CHECK(c.sink.calls[0].ioctls == 1);
  CHECK(c.sink.calls[0].ioctl_time == 1);
  CHECK(c.sink.calls[1].ioctls == 2);
  CHECK(c.sink.calls[1].ioctl_time == 31);
  c.call({.ts = 100}, "cuInit");
  CHECK(c.last().ioctls == 0);
}

TEST_CASE("What the driver returned is reported only where it is known") {
  Correlating c(watching());
  StructBytes alloc(48);
  alloc.set<std::uint32_t>(0, 1).set<std::uint32_t>(12, 0x40);
  SECTION("an ioctl that the kernel refused has no status") {
    c.feed(driver_begins({}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.feed(driver_ends({.ts = 5}, abi::CB_IOCTL, -22));
    CHECK(c.sink.driver_calls.at(0).result == -22);
    CHECK_FALSE(c.sink.driver_calls.at(0).status);
    CHECK(driver_line(c.sink.driver_calls[0]).find(R"("ret":-22,"error":"EINVAL")") !=
          std::string::npos);
  }
  SECTION("the new object's handle is what the driver made it") {
    StructBytes after = alloc;
    after.set<std::uint32_t>(8, 0x5c000009);
    c.feed(driver_begins({}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.feed(driver_ends({.ts = 5}, abi::CB_IOCTL, 0, after));
    CHECK(c.sink.driver_calls.at(0).details.object == 0x5c000009);
    CHECK(c.sink.driver_calls.at(0).status == 0);
  }
  SECTION("a return whose begin was lost is nothing") {
    c.feed(driver_ends({.ts = 5}, abi::CB_IOCTL));
    CHECK(c.sink.driver_calls.empty());
  }
  SECTION("a begin whose return was lost") {
    c.feed(driver_begins({.ts = 1}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.feed(driver_begins({.ts = 9, .drops = 1}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    REQUIRE(c.sink.driver_calls.size() == 1);
    CHECK(c.sink.driver_calls[0].return_lost);
    c.feed(driver_ends({.ts = 20, .drops = 3}, abi::CB_IOCTL));  // of another ioctl, maybe
    REQUIRE(c.sink.driver_calls.size() == 2);
    CHECK(c.sink.driver_calls[1].return_lost);
    CHECK_FALSE(c.sink.driver_calls[1].has_return);
  }
  SECTION("one that never returns shows where a thread hangs") {
    c.feed(entry({.ts = 1}, "cuInit", {0}));
    c.feed(driver_begins({.ts = 2}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.correlator.finish();
    REQUIRE(c.sink.driver_calls.size() == 1);
    CHECK(c.sink.driver_calls[0].unfinished);
    CHECK(c.sink.driver_calls[0].call == 1);
    CHECK(c.last().unfinished);
  }
  SECTION("a thread that ends after the trace") {
    c.feed(driver_begins({.ts = 2}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.correlator.stop_at(10);
    c.feed(thread_exit({.ts = 11}));
    REQUIRE(c.sink.driver_calls.size() == 1);
    CHECK(c.sink.driver_calls[0].unfinished);
    CHECK(c.correlator.driver_returns_missed() == 0);
  }
  SECTION("a process whose threads' ends were lost") {
    c.feed(driver_begins({.ts = 2, .tid = 101}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.feed(process({.ts = 4}, abi::CB_EXIT));
    REQUIRE(c.sink.driver_calls.size() == 1);
    CHECK(c.sink.driver_calls[0].unfinished);
  }
  SECTION("what begins after the end") {
    c.correlator.stop_at(10);
    c.feed(driver_begins({.ts = 11}, abi::CB_IOCTL, CTL, RM_ALLOC, alloc));
    c.feed(driver_ends({.ts = 12}, abi::CB_IOCTL));
    CHECK(c.sink.driver_calls.empty());
  }
}

TEST_CASE("A free says what it frees, where its allocation was seen") {
  Correlating c(watching());
  constexpr std::uint32_t RM_FREE = 0xc0104629;
  std::uint64_t ts = 0;
  auto alloc = [&](std::uint32_t client, std::uint32_t object, std::uint32_t klass,
                   std::uint32_t status = 0) {
    StructBytes bytes(48);
    bytes.set(0, client).set(8, object).set(12, klass).set(40, status);
    c.feed(driver_begins({.ts = ++ts}, abi::CB_IOCTL, CTL, RM_ALLOC, bytes));
    c.feed(driver_ends({.ts = ++ts}, abi::CB_IOCTL, 0, bytes));
  };
  auto freed = [&](std::uint32_t client, std::uint32_t object) {
    StructBytes bytes(16);
    bytes.set(0, client).set(8, object);
    c.feed(driver_begins({.ts = ++ts}, abi::CB_IOCTL, CTL, RM_FREE, bytes));
    c.feed(driver_ends({.ts = ++ts}, abi::CB_IOCTL, 0, bytes));
    return c.sink.driver_calls.back().details;
  };
  alloc(0, 0xc1, 0x41);
  alloc(0xc1, 0x5c01, 0x40);
  alloc(0xc1, 0x5c02, 0xc86f);
  alloc(0xc2, 0x5c01, 0x80);
  SECTION("each handle of each client") {
    CHECK(freed(0xc1, 0x5c01).class_name == "NV01_MEMORY_LOCAL_USER");
    CHECK(freed(0xc2, 0x5c01).class_name == "NV01_DEVICE_0");
    CHECK(c.sink.driver_calls.back().details.group == DriverGroup::channel);
    CHECK(freed(0xc1, 0x5c02).class_name == "HOPPER_CHANNEL_GPFIFO_A");
  }
  SECTION("once") {
    freed(0xc1, 0x5c01);
    CHECK_FALSE(freed(0xc1, 0x5c01).klass);
  }
  SECTION("with a client goes all that it has") {
    CHECK(freed(0xc1, 0xc1).class_name == "NV01_ROOT_CLIENT");
    CHECK_FALSE(freed(0xc1, 0x5c01).klass);
    CHECK(freed(0xc2, 0x5c01).klass);
  }
  SECTION("what was not made is not freed") {
    alloc(0xc1, 0x5c09, 0x40, 0x51);
    CHECK_FALSE(freed(0xc1, 0x5c09).klass);
  }
  SECTION("a process takes its own along") {
    c.feed(process({.ts = ++ts}, abi::CB_EXIT));
    CHECK_FALSE(freed(0xc1, 0x5c01).klass);
  }
}

TEST_CASE("A process that only calls the driver is announced, once") {
  Correlating c(watching());
  c.feed(driver_begins({.ts = 2}, abi::CB_OPEN, CTL));
  c.feed(driver_ends({.ts = 3}, abi::CB_OPEN));
  c.feed(driver_begins({.ts = 4}, abi::CB_CLOSE, CTL));
  c.feed(driver_ends({.ts = 5}, abi::CB_CLOSE));
  CHECK(c.sink.processes.size() == 1);
  CHECK(c.sink.driver_calls.size() == 2);
}

TEST_CASE("Lines of operations on the driver") {
  DriverCall call;
  call.ts = 1000;
  call.duration = 2345;
  call.pid = call.tid = 7;
  call.call = 3;
  call.device = "nvidiactl";
  call.has_return = true;
  call.details.number = 0x2a;
  call.details.name = "NV_ESC_RM_CONTROL";
  call.details.control = 0x20800101;
  call.details.control_name = "NV2080_CTRL_CMD_GPU_GET_INFO";
  call.details.group = DriverGroup::query;
  call.details.client = 0xc1d00001;
  call.status = 0x56;
  CHECK(driver_line(call) ==
        R"({"type":"kernel","op":"ioctl","name":"NV_ESC_RM_CONTROL","ts":1000,"duration_us":2.345,)"
        R"("pid":7,"tid":7,"ret":0,"call":3,"device_file":"nvidiactl",)"
        R"("control":"NV2080_CTRL_CMD_GPU_GET_INFO","group":"query","client":"0xc1d00001",)"
        R"("status":"NV_ERR_NOT_SUPPORTED"})"
        "\n");
  // What the tables do not know is given as a number, never dropped.
  call.details = {};
  call.details.number = 0xee;
  call.status = 0xabcdef;
  CHECK(driver_line(call).find(R"("name":"0xee")") != std::string::npos);
  CHECK(driver_line(call).find(R"("status":"0xabcdef")") != std::string::npos);
  for (std::int64_t result : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-4096}}) {
    call.result = result;  // not an error of the kernel
    CHECK(driver_line(call).find(fmt::format(R"("ret":{})", result)) != std::string::npos);
    CHECK(driver_line(call).find(R"("error")") == std::string::npos);
  }
  call = {};
  call.op = DriverCall::Op::mmap;
  call.device = "nvidia0";
  call.length = 4096;
  call.unfinished = true;
  CHECK(driver_line(call) == R"({"type":"kernel","op":"mmap","name":"mmap","ts":0,"pid":0,"tid":0,)"
                             R"("device_file":"nvidia0","size":4096,"unfinished":true})"
                             "\n");
}

TEST_CASE("A thread may fault inside an operation") {
  Correlating c(watching());
  c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
  c.feed(driver_begins({.ts = 20}, abi::CB_IOCTL, CTL, RM_CONTROL, control(0x20800101)));
  auto fault = driver_begins({.ts = 30}, abi::CB_FAULT, UVM, 1);
  fault.as<abi::cb_driver>().argument = 0x7f0000001000;
  c.feed(fault);
  c.feed(driver_ends({.ts = 35}, abi::CB_FAULT, 0x100));
  c.feed(driver_ends({.ts = 50}, abi::CB_IOCTL, 0, control(0x20800101)));
  c.feed(driver_begins({.ts = 60}, abi::CB_FAULT, UVM));
  c.feed(driver_ends({.ts = 61}, abi::CB_FAULT, 2));
  c.feed(driver_begins({.ts = 70}, abi::CB_FAULT, UVM));
  c.feed(thread_exit({.ts = 80}));

  const auto& made = c.sink.driver_calls;
  REQUIRE(made.size() == 4);
  CHECK(
      driver_line(made[0]) ==
      R"({"type":"kernel","op":"fault","name":"fault","ts":30,"duration_us":0.005,"pid":100,"tid":100,)"
      R"("ret":256,"call":1,"device_file":"nvidia-uvm","address":"0x7f0000001000","access":"write"})"
      "\n");
  CHECK(made[1].op == DriverCall::Op::ioctl);
  CHECK(made[1].duration == 30);
  CHECK(driver_line(made[2]).find(R"("ret":2,"error":"VM_FAULT_SIGBUS")") != std::string::npos);
  CHECK(driver_line(made[2]).find(R"("access":"read")") != std::string::npos);
  CHECK(made[3].return_lost);
  CHECK(c.correlator.driver_returns_missed() == 1);
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.sink.calls[0].ioctls == 1);
}

TEST_CASE("Interrupts belong to no process") {
  Correlating c(watching());
  c.feed(interrupted({.ts = 2500, .pid = 0, .tid = 3}, abi::CB_ISR, 1200));
  c.feed(interrupted({.ts = 3000, .pid = 0, .tid = 3}, abi::CB_GPU_FAULTS, 4000));
  REQUIRE(c.sink.driver_calls.size() == 2);
  CHECK(driver_line(c.sink.driver_calls[0]) ==
        R"({"type":"kernel","op":"interrupt","name":"isr","ts":1200,"duration_us":1.300,"cpu":3})"
        "\n");
  CHECK(c.sink.driver_calls[1].duration == 0);  // the CPUs' clocks differ
  CHECK(c.sink.processes.empty());
  CHECK(c.correlator.counts().driver_calls == 2);
}

TEST_CASE("Ends of operations that the kernel does not report are counted") {
  Correlating c(watching());
  c.feed(driver_begins({.ts = 20}, abi::CB_POLL, CTL));
  c.feed(driver_begins({.ts = 30}, abi::CB_POLL, CTL));  // nothing lost: the probe was not hit
  c.feed(driver_ends({.ts = 40}, abi::CB_POLL));
  CHECK(c.correlator.driver_returns_missed() == 1);
  c.feed(driver_begins({.ts = 50}, abi::CB_POLL, CTL));
  c.feed(driver_begins({.ts = 60, .drops = 1}, abi::CB_POLL, CTL));  // its record was, and counted
  CHECK(c.correlator.driver_returns_missed() == 1);
  auto unwatched = driver_begins({.ts = 70, .drops = 1}, abi::CB_IOCTL, UVM, 1);
  unwatched.head().flags = abi::CB_OUT_LOST;
  c.feed(unwatched);
  REQUIRE(c.sink.driver_calls.size() == 5);
  CHECK(c.sink.driver_calls[0].return_lost);
  CHECK(c.sink.driver_calls[4].return_lost);
  CHECK(c.correlator.driver_returns_missed() == 3);
}

TEST_CASE("A thread that is recorded inside may be killed in the driver, and does not return") {
  Correlating c(watching());
  for (std::uint32_t tid : {100u, 101u, 102u})
    c.feed(driver_begins({.ts = 2, .tid = tid}, abi::CB_POLL, CTL));
  auto killed = thread_exit({.ts = 3, .tid = 101});
  killed.head().flags = abi::CB_RETURN_UNSEEN;
  c.feed(killed);
  killed = thread_exit({.ts = 3, .tid = 102, .drops = 1});  // its return may have been lost
  killed.head().flags = abi::CB_RETURN_UNSEEN;
  c.feed(killed);
  auto exit = process({.ts = 4}, abi::CB_EXIT);
  exit.head().flags = abi::CB_RETURN_UNSEEN;
  c.feed(exit);
  CHECK(c.correlator.driver_returns_missed() == 0);
  REQUIRE(c.sink.driver_calls.size() == 3);
  for (const DriverCall& call : c.sink.driver_calls) {
    CHECK(call.return_lost == (call.tid == 102));
    CHECK(call.unfinished == (call.tid != 102));
  }
}

TEST_CASE("A thread that ends has come out of the driver") {
  Correlating c(watching());
  c.feed(driver_begins({.ts = 2}, abi::CB_IOCTL, CTL, RM_CONTROL, control(0x20800101)));
  c.feed(driver_begins({.ts = 2, .tid = 101}, abi::CB_IOCTL, UVM, 1));
  c.feed(driver_begins({.ts = 2, .tid = 102}, abi::CB_IOCTL, UVM, 1));
  c.feed(thread_exit({.ts = 3, .tid = 101}));
  c.feed(thread_exit({.ts = 3, .tid = 102, .drops = 1}));  // a record was lost, and counted
  CHECK(c.correlator.driver_returns_missed() == 1);
  c.feed(process({.ts = 4}, abi::CB_EXIT));
  CHECK(c.correlator.driver_returns_missed() == 2);
  REQUIRE(c.sink.driver_calls.size() == 3);
  for (const DriverCall& call : c.sink.driver_calls) {
    CHECK(call.return_lost);
    CHECK_FALSE(call.unfinished);
  }
}

TEST_CASE("A GPU's error comes with its time") {
  Correlating c(watching());
  c.feed(xid({.ts = 12}, 79, "0000:0a:00.0", "pid=5, name=x, off the bus"));
  c.correlator.finish();
  REQUIRE(c.sink.gpu_errors.size() == 1);
  CHECK(c.sink.gpu_errors[0].ts == 12);
  CHECK(c.sink.gpu_errors[0].pid == 5);
}
