#include "cudabpf/describe.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "support/sample_records.hpp"

using namespace cudabpf;
using samples::StructBytes;

namespace {

constexpr std::uint64_t GARBAGE = 0xdeadbeef'00000000;
constexpr std::uint64_t HUGE_WORD = std::uint64_t{1} << 40;

const Function& function(const char* symbol) {
  const Function* found = find_function(symbol);
  REQUIRE(found);
  return *found;
}

Details entry_of(const char* symbol, const std::vector<std::uint64_t>& words,
                 std::span<const std::byte> structure = {}) {
  return describe_entry(function(symbol), words, structure);
}

Details call_of(const char* symbol, const std::vector<std::uint64_t>& words,
                const std::vector<std::uint64_t>& outs) {
  Details details = entry_of(symbol, words);
  describe_outs(function(symbol), words, outs, details);
  return details;
}

// Every field that is present, as text: one that is not listed is absent.
std::string text(const Details& d) {
  std::string out(to_string(d.op));
  auto add = [&](const char* name, const auto& value) {
    if (value) out += std::string(" ") + name + "=" + std::to_string(*value);
  };
  add("size", d.size);
  add("ptr", d.ptr);
  add("dst", d.dst);
  add("src", d.src);
  add("stream", d.stream);
  add("handle", d.handle);
  add("device", d.device);
  if (d.has_dims) {
    for (const Dim3& dim : {d.grid, d.block})
      out +=
          " " + std::to_string(dim.x) + "x" + std::to_string(dim.y) + "x" + std::to_string(dim.z);
    out += " shared=" + std::to_string(d.shared);
  }
  if (d.inferred_op) out += " inferred";
  return out;
}

// CUDA_MEMCPY2D: types at 16 and 72; host, device and array 8, 16 and 24 after each.
StructBytes copy2d(std::uint32_t from, std::uint32_t to, std::uint64_t width,
                   std::uint64_t height) {
  StructBytes bytes(128);
  bytes.set(16, from).set(72, to).set(112, width).set(120, height);
  for (std::size_t i = 0; i < 3; i++)
    bytes.set<std::uint64_t>(24 + 8 * i, 10 + i).set<std::uint64_t>(80 + 8 * i, 20 + i);
  return bytes;
}

StructBytes copy3d(std::uint32_t from, std::uint32_t to) {
  StructBytes bytes(200);
  bytes.set(32, from).set(120, to);
  bytes.set<std::uint64_t>(176, 7).set<std::uint64_t>(184, 5).set<std::uint64_t>(192, 3);
  for (std::size_t i = 0; i < 3; i++)
    bytes.set<std::uint64_t>(40 + 8 * i, 10 + i).set<std::uint64_t>(128 + 8 * i, 20 + i);
  return bytes;
}

enum : std::uint32_t { HOST = 1, DEVICE, ARRAY, UNIFIED };

}  // namespace

TEST_CASE("Words are as wide as their roles: upper halves of registers hold anything") {
  CHECK(value_of(Role::u8, GARBAGE | 0x1ff) == 0xff);
  CHECK(value_of(Role::u16, GARBAGE | 0x1ffff) == 0xffff);
  CHECK(value_of(Role::u32, GARBAGE | 5) == 5);
  CHECK(value_of(Role::i32, GARBAGE | 0xffffffff) == 0xffffffff);
  CHECK(value_of(Role::device, GARBAGE | 3) == 3);
  CHECK(value_of(Role::ptr32, GARBAGE | 0x1000) == 0x1000);
  for (auto role : {Role::u64, Role::ptr, Role::hptr, Role::stream, Role::function, Role::location,
                    Role::mem_handle})
    CHECK(value_of(role, GARBAGE | 5) == (GARBAGE | 5));
}

TEST_CASE("Launches by arguments") {
  std::vector<std::uint64_t> words = {0x5600,      GARBAGE | 1024, GARBAGE | 2,
                                      GARBAGE | 3, GARBAGE | 256,  GARBAGE | 4,
                                      GARBAGE | 5, GARBAGE | 4096, 77};
  CHECK(text(entry_of("cuLaunchKernel", words)) ==
        "launch stream=77 handle=22016 1024x2x3 256x4x5 shared=4096");
  CHECK(text(entry_of("cuLaunchCooperativeKernel", words)) ==
        "launch stream=77 handle=22016 1024x2x3 256x4x5 shared=4096");
  // A record that holds less than the call gave says less, but nothing wrong.
  words.resize(8);
  CHECK(text(entry_of("cuLaunchKernel", words)) == "launch handle=22016");
  CHECK(text(entry_of("cuLaunchKernel", {})) == "launch");
  CHECK(text(entry_of("cuLaunch", {9})) == "launch handle=9");
  CHECK(text(entry_of("cuLaunchGridAsync", {9, 2, 3, 8})) == "launch stream=8 handle=9");
}

TEST_CASE("Launches by struct") {
  StructBytes config(56);
  for (std::uint32_t i = 0; i < 7; i++) config.set(std::size_t{4} * i, i + 1);
  config.set<std::uint64_t>(32, 88);
  CHECK(text(entry_of("cuLaunchKernelEx", {1, 9}, config)) ==
        "launch stream=88 handle=9 1x2x3 4x5x6 shared=7");
  CHECK(text(entry_of("cuLaunchKernelEx", {1, 9})) == "launch handle=9");
  CHECK(text(entry_of("cuLaunchKernelEx", {1, 9}, StructBytes(48))) == "launch handle=9");

  StructBytes params(56);
  params.set<std::uint64_t>(0, 9).set<std::uint64_t>(40, 66);
  for (std::uint32_t i = 0; i < 7; i++) params.set(8 + std::size_t{4} * i, i + 1);
  CHECK(text(entry_of("cuLaunchCooperativeKernelMultiDevice", {1, 1, 0}, params)) ==
        "launch stream=66 handle=9 1x2x3 4x5x6 shared=7");
}

TEST_CASE("A graph's nodes say what they will do, and stay nodes") {
  StructBytes node(72);
  node.set<std::uint64_t>(56, 10);
  for (std::uint32_t i = 0; i < 7; i++) node.set(8 + std::size_t{4} * i, i + 1);
  CHECK(text(entry_of("cuGraphAddKernelNode_v2", {1, 2, 3, 4, 5}, node)) ==
        "add_node handle=10 1x2x3 4x5x6 shared=7");
  node.set<std::uint64_t>(0, 9);  // a function goes before a context-independent kernel
  CHECK(text(entry_of("cuGraphAddKernelNode_v2", {1, 2, 3, 4, 5}, node)) ==
        "add_node handle=9 1x2x3 4x5x6 shared=7");
  CHECK(text(entry_of("cuGraphAddMemcpyNode", {1, 2, 3, 4, 5, 6}, copy3d(HOST, DEVICE))) ==
        "add_node size=105 dst=21 src=10");
}

TEST_CASE("Copies by arguments") {
  CHECK(text(entry_of("cuMemcpyHtoD_v2", {1, 2, HUGE_WORD})) ==
        "HtoD size=1099511627776 dst=1 src=2");
  CHECK(text(entry_of("cuMemcpyDtoHAsync_v2", {1, 2, 3, 4})) == "DtoH size=3 dst=1 src=2 stream=4");
  CHECK(text(entry_of("cuMemcpyDtoD", {GARBAGE | 1, GARBAGE | 2, GARBAGE | 3})) ==
        "DtoD size=3 dst=1 src=2");
  CHECK(text(entry_of("cuMemcpyPeerAsync", {1, 90, 2, 91, 3, 4})) ==
        "peer size=3 dst=1 src=2 stream=4");
  CHECK(text(entry_of("cuMemcpyAsync", {1, 2, 3, 4})) == "unified size=3 dst=1 src=2 stream=4");
  CHECK(text(entry_of("cuMemcpyHtoA_v2", {1, 2, 3, 4})) == "HtoA size=4 src=3");
  CHECK(text(entry_of("cuMemcpyDtoA_v2", {1, 2, 3, 4})) == "DtoA size=4 src=3");
  CHECK(text(entry_of("cuMemcpyAtoA_v2", {1, 2, 3, 4, 5})) == "AtoA size=5");
}

TEST_CASE("Copies by struct, in every direction") {
  const char* letters = "HDA";
  for (std::uint32_t from = HOST; from <= ARRAY; from++)
    for (std::uint32_t to = HOST; to <= ARRAY; to++) {
      std::string op = {letters[from - 1], 't', 'o', letters[to - 1]};
      auto ends = fmt::format(" dst={} src={}", 19 + to, 9 + from);
      CHECK(text(entry_of("cuMemcpy2D_v2", {1}, copy2d(from, to, 6, 7))) ==
            fmt::format("{} size=42{}", op, ends));
      CHECK(text(entry_of("cuMemcpy3DAsync_v2", {1, 5}, copy3d(from, to))) ==
            fmt::format("{} size=105{} stream=5", op, ends));
      CHECK(text(entry_of("cuMemcpy3DPeer", {1}, copy3d(from, to))) == "peer size=105" + ends);
    }
  // Unified addresses are where the device's would be.
  CHECK(text(entry_of("cuMemcpy2D_v2", {1}, copy2d(UNIFIED, UNIFIED, 6, 7))) ==
        "unified size=42 dst=21 src=11");
  // If one side is missing or wrong, no direction is made up.
  CHECK(text(entry_of("cuMemcpy2D_v2", {1}, copy2d(HOST, UNIFIED, 6, 7))) ==
        "struct size=42 dst=21 src=10");
  CHECK(text(entry_of("cuMemcpy2D_v2", {1}, copy2d(0, 99, 6, 7))) ==
        "struct size=42 dst=21 src=11");
  // A struct that could not be read, or not completely.
  CHECK(text(entry_of("cuMemcpy2D_v2", {1})) == "struct");
  CHECK(text(entry_of("cuMemcpy2D_v2", {1}, StructBytes(120))) == "struct");
  CHECK(text(entry_of("cuMemcpy3D_v2", {1}, StructBytes(192))) == "struct");
}

TEST_CASE("Sizes that do not fit are no sizes") {
  CHECK(text(entry_of("cuMemcpy2D_v2", {1}, copy2d(HOST, DEVICE, HUGE_WORD, HUGE_WORD))) ==
        "HtoD dst=21 src=10");
  CHECK(text(entry_of("cuMemsetD2D32_v2", {1, 0, 0, HUGE_WORD, HUGE_WORD})) == "set ptr=1");
  CHECK(text(entry_of("cuMemsetD32_v2", {1, 0, std::uint64_t{1} << 62})) == "set ptr=1");
  CHECK(text(call_of("cuMemAllocPitch_v2", {1, 2, 3, HUGE_WORD, 4}, {500, HUGE_WORD})) ==
        "alloc ptr=500");
  StructBytes sizes(16);
  sizes.set<std::uint64_t>(0, ~std::uint64_t{0}).set<std::uint64_t>(8, 2);
  CHECK(text(entry_of("cuMemcpyBatchAsync_v2", {1, 2, 3, 2, 0, 0, 0, 9}, sizes)) ==
        "unified stream=9");
}

TEST_CASE("Batches add up their sizes, if all were read") {
  StructBytes sizes(24);
  sizes.set<std::uint64_t>(0, 100).set<std::uint64_t>(8, 20).set<std::uint64_t>(16, 3);
  auto batch = [&](std::uint64_t count) {
    return text(entry_of("cuMemcpyBatchAsync_v2", {1, 2, 3, count, 0, 0, 0, 9}, sizes));
  };
  CHECK(batch(3) == "unified size=123 stream=9");
  CHECK(batch(1) == "unified size=100 stream=9");
  CHECK(batch(0) == "unified size=0 stream=9");
  CHECK(batch(4) == "unified stream=9");
  // This count's size in bytes wraps to 0: it must not be walked.
  CHECK(batch(std::uint64_t{1} << 61) == "unified stream=9");
}

TEST_CASE("Memory: what was requested, and what came") {
  CHECK(text(entry_of("cuMemAlloc_v2", {1, 4096})) == "alloc size=4096");
  CHECK(text(call_of("cuMemAlloc_v2", {1, 4096}, {0x7f00})) == "alloc size=4096 ptr=32512");
  CHECK(text(call_of("cuMemAlloc", {1, GARBAGE | 4096}, {GARBAGE | 0x7f00})) ==
        "alloc size=4096 ptr=32512");
  CHECK(text(call_of("cuMemAlloc_v2", {1, 4096}, {})) == "alloc size=4096");
  CHECK(text(call_of("cuMemAllocAsync", {1, 4096, 5}, {0x7f00})) ==
        "alloc size=4096 ptr=32512 stream=5");
  CHECK(text(call_of("cuMemHostAlloc", {1, 64, 2}, {99})) == "alloc size=64 ptr=99");
  // The pitch is known at return, and with it the size.
  CHECK(text(entry_of("cuMemAllocPitch_v2", {1, 2, 100, 10, 4})) == "alloc");
  CHECK(text(call_of("cuMemAllocPitch_v2", {1, 2, 100, 10, 4}, {500, 512})) ==
        "alloc size=5120 ptr=500");
  CHECK(text(call_of("cuMemAllocPitch", {1, 2, 100, GARBAGE | 10, 4},
                     {GARBAGE | 500, GARBAGE | 512})) == "alloc size=5120 ptr=500");
  CHECK(text(call_of("cuMemAllocPitch_v2", {1, 2, 100, 10, 4}, {500})) == "alloc ptr=500");
  CHECK(text(entry_of("cuMemFree_v2", {0x7f00})) == "free ptr=32512");
  CHECK(text(entry_of("cuMemHostRegister_v2", {99, 64, 0})) == "register size=64 ptr=99");
  CHECK(text(entry_of("cuMemsetD16_v2", {50, 1, 100})) == "set size=200 ptr=50");
  CHECK(text(entry_of("cuMemsetD2D8Async", {50, 512, 1, 100, 10, 4})) ==
        "set size=1000 ptr=50 stream=4");
}

TEST_CASE("A null out-pointer returns nothing") {
  CHECK(text(call_of("cuMemAlloc_v2", {1, 64}, {0x7000})) == "alloc size=64 ptr=28672");
  CHECK(text(call_of("cuMemAlloc_v2", {0, 64}, {0})) == "alloc size=64");
}

TEST_CASE("Virtual memory: handles, and the device where the location is one") {
  StructBytes prop(32);
  prop.set<std::int32_t>(8, 1).set<std::int32_t>(12, 3);
  Details created = entry_of("cuMemCreate", {1, 2097152, 5, 0}, prop);
  CHECK(text(created) == "alloc size=2097152 device=3");
  std::vector<std::uint64_t> words = {1, 2097152, 5, 0}, outs = {0xabc};
  describe_outs(function("cuMemCreate"), words, outs, created);
  CHECK(text(created) == "alloc size=2097152 handle=2748 device=3");
  prop.set<std::int32_t>(8, 3);  // CU_MEM_LOCATION_TYPE_HOST_NUMA: 3 is a NUMA node
  CHECK(text(entry_of("cuMemCreate", {1, 2097152, 5, 0}, prop)) == "alloc size=2097152");
  CHECK(text(entry_of("cuMemMap", {70, 2097152, 0, 0xabc, 0})) ==
        "map size=2097152 ptr=70 handle=2748");
  CHECK(text(entry_of("cuMemUnmap", {70, 2097152})) == "unmap size=2097152 ptr=70");
  CHECK(text(entry_of("cuMemRelease", {0xabc})) == "free handle=2748");
  CHECK(text(call_of("cuMemAddressReserve", {1, 2097152, 0, 0, 0}, {70})) ==
        "reserve size=2097152 ptr=70");
  StructBytes pool(88);
  pool.set<std::int32_t>(8, 1).set<std::int32_t>(12, 2);
  CHECK(text(entry_of("cuMemPoolCreate", {1, 2}, pool)) == "mem_pool device=2");
}

TEST_CASE("Everything else: streams and devices") {
  CHECK(text(entry_of("cuStreamSynchronize", {5})) == "stream stream=5");
  CHECK(text(entry_of("cuCtxCreate_v2", {1, 2, GARBAGE | 3})) == "create device=3");
  CHECK(text(entry_of("cuMemPrefetchAsync", {50, 100, GARBAGE | 0xffffffff, 4})) ==
        "prefetch size=100 ptr=50 stream=4 device=-1");
  // An address that a query returns is not memory of this call's.
  CHECK(text(call_of("cuModuleGetGlobal_v2", {1, 2, 3, 4}, {500, 8})) == "get_global");
  Function unknown = unknown_function(ApiId::cuda, "cuNew");
  std::vector<std::uint64_t> words = {1, 2, 3, 4, 5, 6};
  CHECK(text(describe_entry(unknown, words, {})) == "other");
}

TEST_CASE("No function's description fails on few words, many, or a short struct") {
  for (const Function& f : cuda_functions())
    for (std::size_t count = 0; count <= CB_MAX_ARGS; count++) {
      CAPTURE(f.symbol, count);
      std::vector<std::uint64_t> words(count, ~std::uint64_t{0});
      for (std::size_t size : {0, 8, 72, 200}) {
        Details details = describe_entry(f, words, StructBytes(size));
        CHECK(details.op != Op::none);
        for (std::size_t outs = 0; outs <= CB_MAX_OUTS; outs++)
          describe_outs(f, words, std::vector<std::uint64_t>(outs, ~std::uint64_t{0}), details);
      }
    }
}
