#include "analyze/memory/traced_memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

using Lines = std::vector<std::string>;

// Writes down in words what a listener receives.
class BlockEvents : public LiveMemory::Listener {
 public:
  void allocated(const LiveMemory::Block& block) override {
    events.push_back("+" + std::to_string(block.size) + " " + std::string(to_string(block.kind)));
    last = block;
  }
  void ended(const LiveMemory::Block& block, std::uint64_t ts, LiveMemory::Ended how) override {
    constexpr std::string_view HOW[] = {"freed", "replaced", "with context", "with process"};
    events.push_back("-" + std::to_string(block.size) + " " +
                     std::string(HOW[static_cast<int>(how)]) + " at " + std::to_string(ts));
  }
  void freed_unknown(const MemoryCall& free) override {
    events.push_back("unknown " + hexadecimal(free.ptr.value_or(0)));
  }

  Lines events;
  LiveMemory::Block last;
  LiveMemory::LeftOut left_out;
};

BlockEvents follow_blocks(const Trace& trace, std::size_t most = LiveMemory::MAX) {
  BlockEvents blocks;
  LineParser parser;
  TracedMemory memory(parser.names(), blocks, most);
  each_line(parser, trace.text, [&](const Line& line) { memory.line(line); });
  blocks.left_out = memory.live().left_out();
  return blocks;
}
Lines block_events(const Trace& trace) { return follow_blocks(trace).events; }

}  // namespace

TEST_CASE("Memory lives from its allocation's return to its free's") {
  Trace trace;
  trace.now = 10;
  trace.alloc(100, "0xa0").free("0xa0");
  BlockEvents heard = follow_blocks(trace);
  CHECK(heard.events == Lines{"+100 device", "-100 freed at 13000"});
  CHECK(heard.last.since == 11'000);
  CHECK(heard.last.address == 0xa0);
  CHECK(heard.last.call == 1);
}

TEST_CASE("Frees by other functions, of nothing, and of what is not known") {
  Trace trace;
  trace.alloc(1, "0xa0", "managed").free("0xa0");
  trace.alloc(2, "0xb0", "async").free("0xb0", "device");
  trace.free("0x0").free("0xc0");
  trace.alloc(3, "0xd0").free("0xd0").free("0xd0");
  CHECK(block_events(trace) == Lines{"+1 managed", "-1 freed at 3000", "+2 async",
                                     "-2 freed at 7000", "unknown 0xc0", "+3 device",
                                     "-3 freed at 15000", "unknown 0xd0"});
}

TEST_CASE("Calls that failed or were not seen to return do nothing") {
  Trace trace;
  trace.call("memory", "alloc", R"("name":"cuMemAlloc","size":9,"kind":"device")", 2);
  trace.line(R"({"id":90,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":1,"pid":1,"tid":1,)"
             R"("size":9,"kind":"device","unfinished":true})");
  trace.alloc(5, "0xa0").free("0xa0", "device", 1);
  trace.line(R"({"id":91,"type":"memory","op":"free","name":"cuMemFree","ts":1,"pid":1,"tid":1,)"
             R"("ptr":"0xa0","kind":"device","return_lost":true})");
  CHECK(block_events(trace) == Lines{"+5 device"});
}

TEST_CASE("An address that is allocated anew was freed unseen") {
  Trace trace;
  trace.alloc(5, "0xa0").alloc(6, "0xa0").free("0xa0");
  CHECK(block_events(trace) ==
        Lines{"+5 device", "-5 replaced at 3000", "+6 device", "-6 freed at 5000"});
}

TEST_CASE("A free that returns after another thread has got the same address") {
  Trace trace;
  trace.alloc(5, "0xa0").alloc(6, "0xa0");  // the latter returns at 3 µs
  trace.line(R"({"id":90,"type":"memory","op":"free","name":"cuMemFree","ts":2500,)"
             R"("duration_us":9.000,"pid":1,"tid":2,"ret":0,"ptr":"0xa0","kind":"device"})");
  CHECK(block_events(trace) == Lines{"+5 device", "-5 replaced at 3000", "+6 device"});
}

TEST_CASE("A call that makes another of the same memory is one") {
  Trace trace;
  auto nested = [&](const std::string& op, const std::string& rest) {
    trace.call("memory", op, rest + R"(,"parent":)" + std::to_string(trace.ids + 2));
    trace.call("memory", op, rest);
  };
  nested("alloc", R"("name":"cuMemAllocHost","size":7,"ptr":"0xa0","kind":"host")");
  nested("free", R"("name":"cuMemFreeHost","ptr":"0xa0","kind":"host")");
  CHECK(block_events(trace) == Lines{"+7 host", "-7 freed at 5000"});
}

TEST_CASE("Calls inside of others are distinguished from those of other threads") {
  Trace trace;
  constexpr int THREADS = 20;
  auto alloc = [&](int id, int thread, const std::string& more) {
    std::string address = "0x" + std::to_string(100 + thread);
    trace.line(R"({"id":)" + std::to_string(id) +
               R"(,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":1000,)"
               R"("duration_us":1.000,"pid":1,"tid":)" +
               std::to_string(thread) + R"(,"ret":0,"size":8,"ptr":")" + address +
               R"(","kind":"device")" + more + "}");
  };
  for (int thread = 1; thread <= THREADS; thread++)
    alloc(100 + thread, thread, R"(,"parent":)" + std::to_string(200 + thread));
  for (int thread = 1; thread <= THREADS; thread++) alloc(200 + thread, thread, "");
  CHECK(block_events(trace) == Lines(THREADS, "+8 device"));
}

TEST_CASE("A handle that is used again while what it was is still mapped") {
  Trace trace;
  trace.vmm("alloc", "cuMemCreate", R"("size":64,"handle":"0xa0")");
  trace.vmm("map", "cuMemMap", R"("size":64,"ptr":"0x1000","handle":"0xa0")");
  SECTION("its release was seen") {
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    trace.vmm("alloc", "cuMemCreate", R"("size":32,"handle":"0xa0")");
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+32 vmm", "-32 freed at 9000"});
  }
  SECTION("its release was not seen") {
    trace.vmm("alloc", "cuMemCreate", R"("size":32,"handle":"0xa0")");
    trace.vmm("unmap", "cuMemUnmap", R"("size":64,"ptr":"0x1000")");
    trace.vmm("alloc", "cuMemCreate", R"("size":16,"handle":"0xa0")");
    CHECK(block_events(trace) ==
          Lines{"+64 vmm", "+32 vmm", "-64 freed at 7000", "-32 replaced at 9000", "+16 vmm"});
  }
}

TEST_CASE("Memory that another process allocated is none of this one's, and its release known") {
  Trace trace;
  std::string import = R"("name":"cuMemImportFromShareableHandle","args":{"handle":"0xa0"})";
  trace.call("ipc", "shareable_handle", import, 1);
  trace.call("ipc", "shareable_handle", import);
  trace.vmm("map", "cuMemMap", R"("size":64,"ptr":"0x1000","handle":"0xa0")");
  trace.call("memory", "vmm", R"("name":"cuMemRetainAllocationHandle","handle":"0xa0")");
  trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
  trace.vmm("unmap", "cuMemUnmap", R"("size":64,"ptr":"0x1000")");
  trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
  CHECK(block_events(trace).empty());
  SECTION("the process does not have it any more") {
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"unknown 0x0"});
  }
  SECTION("a process imports what it has itself") {
    trace.vmm("alloc", "cuMemCreate", R"("size":64,"handle":"0xa0")");
    trace.call("ipc", "shareable_handle", import);
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm"});
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace).back() == "-64 freed at 21000");
  }
}

TEST_CASE("VMM memory is there as long as its handle or a mapping of it is") {
  Trace trace;
  trace.vmm("alloc", "cuMemCreate", R"("size":64,"handle":"0xa0")");
  trace.alloc(5, "0xa0");  // its handle is not an address
  SECTION("the handle goes last") {
    trace.vmm("map", "cuMemMap", R"("size":64,"ptr":"0x1000","handle":"0xa0")");
    trace.vmm("unmap", "cuMemUnmap", R"("size":64,"ptr":"0x1000")");
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+5 device", "-64 freed at 9000"});
  }
  SECTION("the mappings go last, both with one call") {
    trace.vmm("map", "cuMemMap", R"("size":32,"ptr":"0x1000","handle":"0xa0")");
    trace.vmm("map", "cuMemMap", R"("size":32,"ptr":"0x1020","handle":"0xa0")");
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+5 device"});
    trace.vmm("unmap", "cuMemUnmap", R"("size":64,"ptr":"0x1000")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+5 device", "-64 freed at 11000"});
  }
  SECTION("the process has the handle twice") {
    trace.call("memory", "vmm", R"("name":"cuMemRetainAllocationHandle","handle":"0xa0")");
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+5 device"});
    trace.vmm("free", "cuMemRelease", R"("handle":"0xa0")");
    CHECK(block_events(trace) == Lines{"+64 vmm", "+5 device", "-64 freed at 9000"});
  }
}

TEST_CASE("Memory goes away with its context") {
  Trace trace;
  trace.context("cuCtxCreate", R"("device":0,"args":{"pctx":"0x77","flags":0})");
  trace.alloc(1, "0xa0").alloc(2, "0xb0", "async");
  trace.context("cuCtxCreate", R"("device":0,"args":{"pctx":"0x88","flags":0})");
  trace.alloc(3, "0xc0");
  trace.context("cuCtxPopCurrent", R"("args":{"pctx":"0x88"})");
  trace.alloc(4, "0xd0", "host");
  trace.tid = 2;
  trace.alloc(5, "0xe0");  // which context this thread uses is not known
  trace.context("cuCtxSetCurrent", R"("args":{"ctx":"0x77"})");
  trace.alloc(6, "0xf0");
  Lines before = block_events(trace);
  trace.context("cuCtxDestroy", R"("args":{"ctx":"0x77"})");
  Lines all = block_events(trace);
  CHECK(Lines(all.begin() + static_cast<std::ptrdiff_t>(before.size()), all.end()) ==
        Lines{"-1 with context at 21000", "-4 with context at 21000", "-6 with context at 21000"});
  trace.tid = 1;
  trace.alloc(7, "0xaa").context("cuCtxDestroy", R"("args":{"ctx":"0x77"})");
  CHECK(block_events(trace).back() == "+7 device");
}

TEST_CASE("Memory goes away with its context, by whatever call that was made and ended") {
  for (const char* create : {"cuCtxCreate", "cuGLCtxCreate", "cuVDPAUCtxCreate"}) {
    CAPTURE(create);
    Trace trace;
    trace.context(create,
                  R"("device":0,"args":{")" + std::string("pctx") + R"(":"0x77","flags":0})");
    trace.alloc(1, "0xa0");
    trace.context("cuCtxAttach", R"("args":{"pctx":"0x77","flags":0})");
    trace.context("cuCtxDetach", R"("args":{"ctx":"0x77"})");  // as often as it was attached to
    CHECK(block_events(trace) == Lines{"+1 device"});
    trace.context("cuCtxDetach", R"("args":{"ctx":"0x77"})");
    CHECK(block_events(trace) == Lines{"+1 device", "-1 with context at 9000"});
    trace.alloc(2, "0xb0").context("cuCtxDestroy", R"("args":{"ctx":"0x77"})");
    CHECK(block_events(trace).size() == 3);  // it is not known in which context that was allocated
  }
}

TEST_CASE("A primary context goes away with its last user, or by a reset") {
  auto release = [](const std::string& begin) {
    Trace trace;
    trace.line(begin);
    trace.context("cuDevicePrimaryCtxRetain", R"("device":0,"args":{"pctx":"0x77"})");
    trace.context("cuDevicePrimaryCtxRetain", R"("device":0,"args":{"pctx":"0x77"})");
    trace.context("cuCtxSetCurrent", R"("args":{"ctx":"0x77"})").alloc(1, "0xa0");
    trace.context("cuDevicePrimaryCtxRelease", R"("device":0)");
    CHECK(block_events(trace) == Lines{"+1 device"});
    trace.context("cuDevicePrimaryCtxRelease", R"("device":1)");
    CHECK(block_events(trace) == Lines{"+1 device"});
    trace.context("cuDevicePrimaryCtxRelease", R"("device":0)");
    return trace;
  };
  const Lines GONE = {"+1 device", "-1 with context at 13000"};
  CHECK(block_events(release(R"({"type":"trace","mode":"run"})")) == GONE);
  CHECK(block_events(release(R"({"type":"process","op":"fork","ts":0,"pid":1})")) == GONE);
  // Others may have retained it before the trace began.
  Trace attached = release(R"({"type":"trace","mode":"attach"})");
  CHECK(block_events(attached) == Lines{"+1 device"});
  attached.context("cuDevicePrimaryCtxReset", R"("device":0)");
  CHECK(block_events(attached) == Lines{"+1 device", "-1 with context at 15000"});
}

TEST_CASE("Memory goes away with its process, and is no other process's") {
  Trace trace;
  trace.alloc(1, "0xa0");
  trace.pid = 2;
  trace.alloc(2, "0xa0").free("0xb0").process("exit");
  trace.alloc(3, "0xa0").process("exec");
  trace.pid = 1;
  trace.process("start");  // its exit was lost, and its pid is reused
  trace.free("0xa0");
  CHECK(block_events(trace) ==
        Lines{"+1 device", "+2 device", "unknown 0xb0", "-2 with process at 6000", "+3 device",
              "-3 with process at 8000", "-1 with process at 8000", "unknown 0xa0"});
}

TEST_CASE("Where an allocation's entry was lost, its size is not known") {
  Trace trace;
  trace.alloc(5, "0xa0");
  trace.call("memory", "alloc",
             R"("name":"cuMemAlloc","ptr":"0xa0","kind":"device","entry_lost":true)");
  CHECK(block_events(trace) == Lines{"+5 device", "-5 replaced at 3000"});
}

TEST_CASE("However much is mapped and held, what ends is found at once") {
  constexpr int MANY = 5'000;
  auto hex = [](int number) { return "0x" + std::to_string(100'000 + number); };
  Trace trace;
  trace.vmm("alloc", "cuMemCreate", R"("size":64,"handle":"0xa0")");
  trace.context("cuCtxSetCurrent", R"("args":{"ctx":"0x77"})");
  for (int i = 0; i < MANY; i++) {
    trace.vmm("map", "cuMemMap", R"("size":1,"handle":"0xa0","ptr":")" + hex(i) + "\"");
    trace.alloc(1, hex(i));
  }
  trace.tid = 2;
  for (int i = 0; i < MANY; i++) {
    std::string context = hex(i);
    trace.context("cuCtxSetCurrent", R"("args":{"ctx":")" + context + R"("})");
    trace.alloc(1, "0x50").alloc(1, "0x50");
    trace.context("cuCtxDestroy", R"("args":{"ctx":")" + context + R"("})");
  }
  CHECK(block_events(trace).size() == 1 + MANY * 5);
}

TEST_CASE("Blocks that are too many at once are not followed, and counted") {
  Trace trace;
  trace.alloc(1, "0xa0").alloc(2, "0xb0").alloc(4, "0xc0").alloc(8, "0xd0");
  trace.free("0xc0").free("0xa0").alloc(16, "0xc0").free("0xd0").free("0xe0").free("0xc0");
  BlockEvents heard = follow_blocks(trace, 2);
  CHECK(heard.events == Lines{"+1 device", "+2 device", "-1 freed at 11000", "+16 device",
                              "unknown 0xe0", "-16 freed at 19000"});
  CHECK(heard.left_out.blocks == 2);
  CHECK(heard.left_out.bytes == 12);
  CHECK(heard.left_out.mappings == 0);
}

TEST_CASE("The bytes of blocks that are not followed do not wrap around") {
  LiveMemory::LeftOut left_out{1, ~std::uint64_t{0} - 1, 0};
  left_out.add({1, 5, 0});
  CHECK(left_out.bytes == ~std::uint64_t{0});
}

TEST_CASE("Mappings and imported handles take part of the space, and give it back") {
  Trace trace;
  trace.vmm("alloc", "cuMemCreate", R"("size":5,"handle":"0x1")");
  for (int i = 1; i <= 3; i++)
    trace.vmm("map", "cuMemMap",
              R"("size":1,"handle":"0x1","ptr":"0x)" + std::to_string(i) + "0\"");
  trace.vmm("unmap", "cuMemUnmap", R"("size":64,"ptr":"0x10")");
  trace.alloc(7, "0xa0");
  BlockEvents heard = follow_blocks(trace, 3);
  CHECK(heard.events == Lines{"+5 vmm", "+7 device"});
  CHECK(heard.left_out.blocks == 0);
  CHECK(heard.left_out.mappings == 1);
}

TEST_CASE("What a process leaves behind gives its space back") {
  Trace trace;
  trace.alloc(1, "0xa0").alloc(2, "0xb0").alloc(4, "0xc0").process("exit");
  trace.process("start");
  trace.alloc(8, "0xa0").free("0xc0");
  BlockEvents heard = follow_blocks(trace, 2);
  CHECK(heard.events == Lines{"+1 device", "+2 device", "-1 with process at 6000",
                              "-2 with process at 6000", "+8 device", "unknown 0xc0"});
  CHECK(heard.left_out.blocks == 1);
}
