// The two GPUs of a copy.
#include <catch2/catch_test_macros.hpp>

#include "allocating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint64_t CONTEXTS[] = {0xc0, 0xc1};

// Memory of two devices: at DEVICE_AT and 1 MiB after it.
struct TwoDevices : Correlating {
  TwoDevices() {
    for (int device = 0; device < 2; device++) {
      auto ordinal = static_cast<std::uint64_t>(device);
      call({}, "cuDevicePrimaryCtxRetain", {1, ordinal}, {CONTEXTS[device]});
      call({}, "cuCtxSetCurrent", {CONTEXTS[device]});
      alloc(*this, DEVICE_AT + (ordinal << 20), 4096);
    }
  }
  // "0 to 1"; empty: not known.
  std::string copied(std::uint64_t dst, std::uint64_t src,
                     const char* symbol = "cuMemcpyDtoDAsync_v2") {
    call({}, symbol, {dst, src, 16, 0});
    return ends();
  }
  std::string ends() const {
    const Details& details = last().details;
    CHECK(details.src_device.has_value() == details.dst_device.has_value());
    if (!details.src_device) return "";
    return std::to_string(*details.src_device) + " to " + std::to_string(*details.dst_device);
  }
};

constexpr std::uint64_t OTHER_AT = DEVICE_AT + (1 << 20);

}  // namespace

TEST_CASE("A copy between two GPUs says which they are") {
  TwoDevices c;
  CHECK(c.copied(OTHER_AT, DEVICE_AT) == "0 to 1");
  CHECK(c.copied(DEVICE_AT + 4080, OTHER_AT + 1, "cuMemcpy") == "1 to 0");
  CHECK(c.last().details.op == Op::DtoD);
  CHECK(c.copied(DEVICE_AT, DEVICE_AT + 64).empty());
  CHECK(c.copied(OTHER_AT, HOST_AT, "cuMemcpyHtoD_v2").empty());
  c.call({}, "cuMemcpyPeer", {OTHER_AT, CONTEXTS[1], OTHER_AT + 64, CONTEXTS[1], 16});
  CHECK(c.ends() == "1 to 1");  // the call itself says so
  c.call({}, "cuMemGetAddressRange_v2", {1, 1, DEVICE_AT}, {DEVICE_AT, 4096});
  CHECK(c.copied(OTHER_AT, DEVICE_AT) == "0 to 1");
}

TEST_CASE("All of a copy lies where it is said to") {
  TwoDevices c;
  auto copied = [&](std::uint64_t src, std::uint64_t size) {
    c.call({}, "cuMemcpyDtoD_v2", {OTHER_AT, src, size});
    return c.ends();
  };
  c.call({}, "cuCtxSetCurrent", {CONTEXTS[0]});
  alloc(c, DEVICE_AT + 4096, 4096);  // adjacent to what is there, and on the same GPU
  c.call({}, "cuCtxSetCurrent", {CONTEXTS[1]});
  alloc(c, DEVICE_AT + 8192, 4096);  // and this is not
  alloc(c, OTHER_AT, 1 << 16);
  CHECK(copied(DEVICE_AT, 8192) == "0 to 1");
  CHECK(copied(DEVICE_AT + 1, 8192).empty());
  CHECK(copied(DEVICE_AT + 8191, 1) == "0 to 1");
  CHECK(copied(DEVICE_AT + 8192, 4097).empty());
}

TEST_CASE("Where memory may be gone, or be anywhere, no GPU is reported") {
  TwoDevices c;
  SECTION("freed") { c.call({}, "cuMemFree_v2", {DEVICE_AT}); }
  SECTION("of a context that is destroyed") { c.call({}, "cuCtxDestroy_v2", {CONTEXTS[0]}); }
  SECTION("managed") { alloc(c, DEVICE_AT, 4096, "cuMemAllocManaged"); }
  SECTION("of a pool") { c.call({}, "cuMemAllocFromPoolAsync", {1, 4096, 0x9, 0}, {DEVICE_AT}); }
  SECTION("calls are missing") { c.feed(entry({.drops = 1}, "cuCtxSynchronize")); }
  SECTION("a thread ended after its last calls were lost") {
    c.call({.tid = 101}, "cuCtxSynchronize");
    c.feed(thread_exit({.tid = 101, .drops = 1}));
  }
  SECTION("what a call returned was lost") {
    c.feed(entry({}, "cuMemAlloc_v2", {1, 64}));
    c.feed(returned({.ts = 100, .flags = abi::CB_OUT_LOST}, "cuMemAlloc_v2"));
  }
  SECTION("another process's, at that address") {
    c.call({}, "cuIpcOpenMemHandle_v2", {1, 0}, {DEVICE_AT});
  }
  CHECK(c.copied(OTHER_AT, DEVICE_AT).empty());
}

TEST_CASE("Mapped memory lies where its physical memory does") {
  TwoDevices c;
  constexpr std::uint64_t HANDLE = 0x77, MAPPED_AT = DEVICE_AT + (2 << 20);
  constexpr std::uint64_t PINNED_ON_0[] = {1, 1, 0, 0};  // CUmemAllocationProp
  auto map = [&] { c.call({}, "cuMemMap", {MAPPED_AT, 4096, 0, HANDLE, 0}); };
  c.feed(entry({}, "cuMemCreate", {1, 4096, 2, 0}, std::as_bytes(std::span(PINNED_ON_0))));
  c.feed(returned({.ts = 1100}, "cuMemCreate", 0, {HANDLE}));
  SECTION("known") {
    map();
    CHECK(c.copied(OTHER_AT, MAPPED_AT) == "0 to 1");
    c.call({}, "cuMemRelease", {HANDLE});
    CHECK(c.copied(OTHER_AT, MAPPED_AT) == "0 to 1");  // it is held as long as it is mapped
    c.call({}, "cuMemUnmap", {MAPPED_AT, 4096});
    CHECK(c.copied(OTHER_AT, MAPPED_AT).empty());
  }
  SECTION("of a handle that is another's by now") {
    c.call({}, "cuMemImportFromShareableHandle", {1, 5, 1}, {HANDLE});
    map();
    CHECK(c.copied(OTHER_AT, MAPPED_AT).empty());
  }
}
