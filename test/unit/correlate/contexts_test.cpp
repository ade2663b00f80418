// The device of a call that does not name one.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint64_t A = 0xa000, B = 0xb000;

struct Devices : Correlating {
  // The device of a launch by that thread; -1: not known.
  int of_launch(std::uint32_t tid = 100) {
    call({.tid = tid}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 0});
    return last().details.device.value_or(-1);
  }
  void retain(int device, std::uint64_t context, int result = 0) {
    call({}, "cuDevicePrimaryCtxRetain", {0x1, static_cast<std::uint64_t>(device)}, {context},
         result);
  }
  void make_current(std::uint64_t context, std::uint32_t tid = 100, int result = 0) {
    call({.tid = tid}, "cuCtxSetCurrent", {context}, {}, result);
  }
};

}  // namespace

TEST_CASE("A call works on the device of the context that its thread made current") {
  Devices c;
  CHECK(c.of_launch() == -1);
  c.retain(0, A);
  c.retain(1, B);
  CHECK(c.of_launch() == -1);
  c.make_current(A);
  CHECK(c.of_launch() == 0);
  CHECK(c.of_launch(101) == -1);
  c.make_current(B, 101);
  CHECK(c.of_launch(101) == 1);
  CHECK(c.of_launch() == 0);
  c.make_current(B);
  CHECK(c.of_launch() == 1);
  c.make_current(0);
  CHECK(c.of_launch() == -1);
}

TEST_CASE("A context may be made current before its device is known") {
  Devices c;
  c.make_current(A);
  CHECK(c.of_launch() == -1);
  c.retain(1, A);
  CHECK(c.of_launch() == 1);
}

TEST_CASE("Contexts are pushed and popped, made and destroyed") {
  Devices c;
  c.call({}, "cuCtxCreate_v2", {0x1, 0, 1}, {A});
  CHECK(c.of_launch() == 1);
  c.call({}, "cuCtxCreate_v4", {0x1, 0, 0, 2}, {B});
  CHECK(c.of_launch() == 2);
  c.call({}, "cuCtxPopCurrent_v2", {0x1}, {B});
  CHECK(c.of_launch() == 1);
  c.call({}, "cuCtxPushCurrent_v2", {B});
  CHECK(c.of_launch() == 2);
  c.call({}, "cuCtxDestroy_v2", {B});
  CHECK(c.of_launch() == 1);
  c.make_current(B);  // another one by now
  CHECK(c.of_launch() == -1);
  c.call({}, "cuCtxDestroy_v2", {A});
  CHECK(c.of_launch() == -1);
}

TEST_CASE("A context outlives a detachment while another user is attached to it") {
  Devices c;
  c.call({}, "cuCtxCreate_v2", {0x1, 0, 1}, {A});
  c.call({}, "cuCtxAttach", {0x1, 0}, {A});
  c.call({}, "cuCtxDetach", {A});
  CHECK(c.of_launch() == 1);
  c.call({}, "cuCtxDetach", {A});
  CHECK(c.of_launch() == -1);
}

TEST_CASE("A primary context is gone when its last user releases it") {
  Devices c;
  bool seen_begin = GENERATE(true, false);
  c.feed(process({}, seen_begin ? abi::CB_FORK : abi::CB_START));
  c.retain(1, A);
  c.retain(1, A);
  c.make_current(A);
  c.call({}, "cuDevicePrimaryCtxRelease_v2", {1});
  CHECK(c.of_launch() == 1);
  c.call({}, "cuDevicePrimaryCtxRelease_v2", {1});
  CHECK(c.of_launch() == (seen_begin ? -1 : 1));  // earlier users, which the trace has not seen
  c.call({}, "cuDevicePrimaryCtxReset_v2", {1});
  CHECK(c.of_launch() == -1);
  c.retain(1, A);
  CHECK(c.of_launch() == 1);
}

TEST_CASE("A green context has the device that it was made for") {
  Devices c;
  c.call({}, "cuGreenCtxCreate", {0x1, 0x2, 1, 0}, {0x9000});
  c.call({}, "cuCtxFromGreenCtx", {0x1, 0x9000}, {A});
  c.make_current(A);
  CHECK(c.of_launch() == 1);
}

TEST_CASE("What failed, or is missing, makes no device current") {
  Devices c;
  c.retain(0, A);
  c.make_current(A);
  SECTION("a failure") {
    c.retain(1, B, 2);
    c.make_current(B, 100, 201);
    CHECK(c.of_launch() == 0);
    c.make_current(B);
    CHECK(c.of_launch() == -1);
  }
  SECTION("a loss") {
    c.call({.drops = 1}, "cuCtxSynchronize");
    c.call({.drops = 1}, "cuCtxSynchronize");
    CHECK_FALSE(c.last().details.device);
  }
  SECTION("a thread's end, a process's end") {
    c.make_current(A, 101);
    c.feed(thread_exit({.tid = 101}));
    CHECK(c.of_launch(101) == -1);
    CHECK(c.of_launch() == 0);
    c.feed(process({}, abi::CB_EXIT));
    CHECK(c.of_launch() == -1);
  }
}

TEST_CASE("Without returns it is not known which context is current") {
  Correlating c({.entry_only = [](const Function&) { return true; }});
  c.feed(entry({}, "cuDevicePrimaryCtxRetain", {0x1, 0}));
  c.feed(entry({}, "cuCtxSetCurrent", {A}));
  c.feed(entry({}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 0}));
  CHECK_FALSE(c.last().details.device);
}

TEST_CASE("Only calls that work on the current device are said to") {
  Devices c;
  c.retain(1, A);
  c.make_current(A);
  auto device = [&](const char* symbol, std::vector<std::uint64_t> words) {
    c.call({}, symbol, words, {0x7000});
    return c.last().details.device.value_or(-1);
  };
  CHECK(device("cuMemAlloc_v2", {0x1, 64}) == 1);
  CHECK(device("cuMemsetD8_v2", {0x7000, 0, 64}) == 1);
  CHECK(device("cuMemcpyHtoD_v2", {0x7000, 0x1, 64}) == 1);
  CHECK(device("cuCtxSynchronize", {}) == 1);
  CHECK(device("cuCtxSynchronize_v2", {A}) == 1);
  CHECK(device("cuCtxSynchronize_v2", {B}) == -1);
  CHECK(device("cuStreamSynchronize", {0}) == 1);
  CHECK(device("cuStreamSynchronize", {0x55}) == -1);  // it may be another context's
  CHECK(device("cuEventSynchronize", {0x56}) == -1);
  CHECK(device("cuMemAllocFromPoolAsync", {0x1, 64, 0x57, 0}) == -1);
  CHECK(device("cuMemcpyPeer", {0x7000, A, 0x8000, B, 64}) == -1);
  CHECK(device("cuGraphLaunch", {1, 0}) == 1);
  CHECK(device("cuMemFree_v2", {0x7000}) == -1);
  CHECK(device("cuMemHostAlloc", {0x1, 64, 0}) == -1);
  CHECK(device("cuModuleUnload", {0x1}) == -1);
  CHECK(device("cuDevicePrimaryCtxRelease_v2", {0}) == 0);  // it names its own
}

TEST_CASE("A stream has the device of the context in which it was made") {
  Devices c;
  c.retain(0, A);
  c.retain(1, B);
  c.make_current(B);
  c.call({}, "cuStreamCreate", {0x1, 0}, {0x5500});
  c.make_current(A);
  c.call({}, "cuMemcpyHtoDAsync_v2", {0x7000, 0x1, 64, 0x5500});
  CHECK(c.last().details.device == 1);
  c.call({}, "cuMemcpyHtoDAsync_v2", {0x7000, 0x1, 64, 0});
  CHECK(c.last().details.device == 0);
  c.call({}, "cuGreenCtxCreate", {0x1, 0x2, 1, 0}, {0x9000});
  c.call({}, "cuGreenCtxStreamCreate", {0x1, 0x9000, 0, 0}, {0x5600});
  c.call({}, "cuStreamSynchronize", {0x5600});
  CHECK(c.last().details.device == 1);
  c.make_current(0);
  c.call({}, "cuStreamCreate", {0x1, 0}, {0x5500});  // in a context that is not known
  c.call({}, "cuStreamSynchronize", {0x5500});
  CHECK_FALSE(c.last().details.device);
}

TEST_CASE("Calls that may have changed what is current leave nothing known") {
  Devices c;
  c.retain(0, A);
  c.make_current(A);
  SECTION("a destruction that reports an earlier failure") {
    c.call({}, "cuCtxCreate_v2", {0x1, 0, 1}, {B});
    c.call({}, "cuCtxDestroy_v2", {B}, {}, 700);
    CHECK(c.of_launch() == -1);
  }
  SECTION("a detachment") {
    c.call({}, "cuCtxDetach", {A});
    CHECK(c.of_launch() == -1);
  }
  SECTION("OpenGL's own way to make one") {
    c.call({}, "cuGLCtxCreate_v2", {0x1, 0, 1}, {B});
    CHECK(c.of_launch() == 1);
  }
}

TEST_CASE("The device is that of a call's beginning") {
  Devices c;
  c.retain(0, A);
  c.retain(1, B);
  c.make_current(A);
  c.feed(entry({.ts = 10, .sp = 0x2000}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 0}));
  c.call({.ts = 20, .sp = 0x1000}, "cuCtxSetCurrent", {B});
  c.feed(returned({.ts = 200, .sp = 0x2000}, "cuLaunchKernel"));
  CHECK(c.last().details.device == 0);
  CHECK(c.of_launch() == 1);
}

TEST_CASE("Where the calls that show devices are not all traced, no device is reported") {
  Correlating c({.coverage = {.devices = false}});
  c.call({}, "cuCtxCreate_v2", {0x1, 0, 1}, {A});
  c.call({}, "cuLaunchKernel", {1, 2, 3, 4, 5, 6, 7, 8, 0});
  CHECK_FALSE(c.last().details.device);
}

TEST_CASE("Contexts and streams that never end do not take all memory, and no device is wrong") {
  Limits limits;
  limits.of(Kept::contexts) = 100;
  Correlating c({.limits = limits});
  auto make_current = [&](std::uint64_t context, std::uint64_t device) {
    c.call({}, "cuDevicePrimaryCtxRetain", {1, device}, {context});
    c.call({}, "cuCtxSetCurrent", {context});
  };
  auto device = [&](std::uint64_t stream) {
    c.call({}, "cuStreamSynchronize", {stream});
    return c.last().details.device.value_or(-1);
  };
  make_current(0xc0, 3);
  for (std::uint64_t i = 0; i < 1000; i++) c.call({}, "cuStreamCreate", {1, 0}, {0x1000 + i});
  CHECK(c.correlator.bounds().all_left_out(Kept::contexts) >= 100);
  CHECK(device(0x1000) == -1);
  make_current(0xc0, 3);
  c.call({}, "cuStreamCreate", {1, 0}, {0x1000});
  CHECK(device(0x1000) == 3);
}
