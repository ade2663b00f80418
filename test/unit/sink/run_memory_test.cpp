#include "sink/run_memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <map>
#include <random>
#include <vector>

#include "analyze/memory/memory.hpp"
#include "support/analyzing.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;

namespace {

// Follows memory as a sink does.
struct Follower {
  RunMemory memory;

  void begin(const Session& session) {
    if (session.mode == "run") memory.all_seen();
  }
  void call(const Call& call) { memory.call(call); }
  void process(const Process& process) { memory.process(process); }
};

struct Holding {
  Follower sink;
  std::uint64_t now = 0, ids = 0;

  explicit Holding(const char* mode = "attach") {
    Session session;
    session.mode = mode;
    sink.begin(session);
  }
  void call(std::uint32_t pid, const char* symbol, std::vector<std::uint64_t> words,
            std::vector<std::uint64_t> outs = {}, int result = 0) {
    SampleCall call(symbol, std::move(words), std::move(outs));
    if (result) call.fail(result);
    call.id = ++ids;
    call.ts = now += 10'000;
    call.pid = call.tid = pid;
    sink.call(call);
  }
  void alloc(std::uint32_t pid, std::uint64_t ptr, std::uint64_t size,
             const char* symbol = "cuMemAlloc_v2") {
    call(pid, symbol, {1, size, 0}, {ptr});
  }
  void free(std::uint32_t pid, std::uint64_t ptr, const char* symbol = "cuMemFree_v2") {
    call(pid, symbol, {ptr});
  }
  void happens(std::uint32_t pid, Process::Op op) {
    Process process;
    process.pid = pid;
    process.op = op;
    process.ts = now;
    sink.process(process);
  }
  MemoryFigures of(MemoryKind kind) const {
    MemoryByKind figures = sink.memory.figures();
    return of_kind(figures, kind);
  }
};

// A program that does anything, in any order, on threads of two processes.
class AnyProgram {
 public:
  AnyProgram(std::uint32_t seed, Follower& stats, Sink& trace)
      : random_(seed), stats_(stats), trace_(trace) {}

  void step() {
    struct Way {
      const char* symbol;
      std::vector<std::uint64_t> words, outs;
    };
    // Few addresses, handles and contexts, so that they meet.
    std::uint64_t at = 0x1000 * (1 + any(6)), size = 0x800 * (1 + any(4));
    std::uint64_t handle = 0x77 + any(3), context = 0xc0 + any(3), device = any(2);
    const std::vector<Way> ways = {
        {"cuMemAlloc_v2", {1, size}, {at}},
        {"cuMemAllocAsync", {1, size, 0}, {at}},
        {"cuMemAllocManaged", {1, size, 0}, {at}},
        {"cuMemAllocHost_v2", {1, size}, {at}},
        {"cuMemFree_v2", {at}, {}},
        {"cuMemFreeAsync", {at, 0}, {}},
        {"cuMemFreeHost", {at}, {}},
        {"cuMemCreate", {1, size, 0, 0}, {handle}},
        {"cuMemMap", {at, size, 0, handle, 0}, {}},
        {"cuMemUnmap", {at, size}, {}},
        {"cuMemRelease", {handle}, {}},
        {"cuMemRetainAllocationHandle", {1, at}, {handle}},
        {"cuMemImportFromShareableHandle", {1, 5, 1}, {handle}},
        {"cuCtxCreate_v2", {1, 0, device}, {context}},
        {"cuCtxDestroy_v2", {context}, {}},
        {"cuCtxSetCurrent", {context}, {}},
        {"cuCtxPushCurrent_v2", {context}, {}},
        {"cuCtxPopCurrent_v2", {1}, {context}},
        {"cuCtxAttach", {1, 0}, {context}},
        {"cuCtxDetach", {context}, {}},
        {"cuGLCtxCreate_v2", {1, 0, device}, {context}},
        {"cuVDPAUCtxCreate_v2", {1, 0, device, 0, 0}, {context}},
        {"cuCtxFromGreenCtx", {1, 0x99}, {context}},
        {"cuDevicePrimaryCtxRetain", {1, device}, {context}},
        {"cuDevicePrimaryCtxRelease_v2", {device}, {}},
        {"cuDevicePrimaryCtxReset_v2", {device}, {}},
        {"cuCtxSynchronize", {}, {}},
    };
    if (any(60) == 0) return process();
    const Way& way = ways[any(ways.size())];
    SampleCall call(way.symbol, way.words, way.outs);
    call.id = ++ids_;
    call.ts = now_ += 3000;
    call.pid = 100 + static_cast<std::uint32_t>(any(2));
    call.tid = call.pid + static_cast<std::uint32_t>(any(2));
    if (any(8) == 0) call.parent = ids_ + 1 + any(2);
    if (any(10) == 0) call.fail(any(2) ? 2 : 600);
    if (any(20) == 0) {
      call.has_return = false;
      call.outs = {};
      call.details = describe_entry(*call.function, call.words, {});
      (any(2) ? call.return_lost : call.unfinished) = true;
    } else if (any(30) == 0) {
      call.has_return = false;
      call.entry_lost = true;
      call.duration = 0;
      call.words = {};
      call.details = {};
      describe_outs(*call.function, {}, call.outs, call.details);
    }
    stats_.call(call);
    trace_.call(call);
  }

 private:
  void process() {
    Process process;
    process.op = static_cast<Process::Op>(any(4));
    process.pid = 100 + static_cast<std::uint32_t>(any(2));
    process.ts = now_;
    stats_.process(process);
    trace_.process(process);
  }
  std::uint64_t any(std::uint64_t below) { return random_() % below; }

  std::mt19937 random_;
  Follower& stats_;
  Sink& trace_;
  std::uint64_t ids_ = 0, now_ = 0;
};

std::vector<std::uint64_t> all_of(const MemoryFigures& of) {
  return {of.allocations,  of.allocated,    of.frees, of.freed, of.replaced,
          of.with_context, of.with_process, of.held,  of.peak};
}

}  // namespace

TEST_CASE("Memory: what was allocated, freed and is held") {
  Holding c;
  auto device = [&] { return c.of(MemoryKind::device); };
  SECTION("of one process") {
    c.alloc(1, 0x1000, 100);
    c.alloc(1, 0x2000, 50);
    c.free(1, 0x1000);
    c.alloc(1, 0x3000, 20);
    CHECK(all_of(device()) == std::vector<std::uint64_t>{3, 170, 1, 100, 0, 0, 0, 70, 150});
  }
  SECTION("a free finds what it frees by address and process") {
    c.alloc(1, 0x1000, 100);
    c.alloc(2, 0x1000, 7);
    c.free(2, 0x1000);
    c.free(2, 0x1000);  // again
    c.free(1, 0);       // legal, frees nothing
    c.free(3, 0x1000);  // of a process that is not known
    CHECK(device().frees == 1);
    CHECK(device().freed == 7);
    CHECK(device().held == 100);
  }
  SECTION("cuMemFree frees managed memory too, as what it is") {
    c.alloc(1, 0x1000, 64, "cuMemAllocManaged");
    c.free(1, 0x1000);
    CHECK(c.of(MemoryKind::managed).freed == 64);
    CHECK(c.of(MemoryKind::managed).held == 0);
    CHECK(device().frees == 0);
  }
  SECTION("VMM memory is known by its handle, which may equal an address or be beside one") {
    c.alloc(1, 0x1000, 10);
    c.alloc(1, 0x1000, 4096, "cuMemCreate");
    c.alloc(1, 0x1001, 4096, "cuMemCreate");
    CHECK(c.of(MemoryKind::vmm).held == 8192);
    CHECK(device().held == 10);
    c.free(1, 0x1000, "cuMemRelease");
    CHECK(c.of(MemoryKind::vmm).held == 4096);
    CHECK(c.of(MemoryKind::vmm).frees == 1);
    CHECK(device().held == 10);
  }
  SECTION("VMM memory that is mapped is held, whatever becomes of its handle") {
    c.alloc(1, 0x77, 4096, "cuMemCreate");
    c.call(1, "cuMemMap", {0x5000, 4096, 0, 0x77, 0});
    c.free(1, 0x77, "cuMemRelease");
    c.alloc(1, 0x77, 2048, "cuMemCreate");
    c.free(1, 0x77, "cuMemRelease");
    CHECK(c.of(MemoryKind::vmm).peak == 6144);
    CHECK(c.of(MemoryKind::vmm).held == 4096);
    c.call(1, "cuMemUnmap", {0x5000, 4096});
    CHECK(c.of(MemoryKind::vmm).held == 0);
  }
  SECTION("memory goes away with the context that its last user detaches from") {
    c.call(1, "cuGLCtxCreate_v2", {1, 0, 0}, {0xc0});
    c.alloc(1, 0x1000, 8192);
    c.call(1, "cuCtxDetach", {0xc0});
    CHECK(device().held == 0);
    CHECK(device().with_context == 8192);
  }
  SECTION("memory goes away with its context") {
    c.call(1, "cuCtxCreate_v2", {1, 0, 0}, {0xc0});
    c.alloc(1, 0x1000, 8192);
    c.call(1, "cuCtxDestroy_v2", {0xc0});
    c.alloc(1, 0x2000, 2048);
    CHECK(device().with_context == 8192);
    CHECK(device().peak == 8192);
    CHECK(device().held == 2048);
  }
  SECTION("a primary context goes with its last user, if all its users were seen") {
    bool seen = GENERATE(true, false);
    Holding fresh(seen ? "run" : "attach");
    fresh.call(1, "cuDevicePrimaryCtxRetain", {1, 0}, {0xc0});
    fresh.call(1, "cuCtxSetCurrent", {0xc0});
    fresh.alloc(1, 0x1000, 64);
    fresh.call(1, "cuDevicePrimaryCtxRelease_v2", {0});
    CHECK(fresh.of(MemoryKind::device).held == (seen ? 0 : 64));
  }
  SECTION("registered and mapped memory was there before") {
    c.call(1, "cuMemHostRegister_v2", {0x1000, 64, 0});
    c.call(1, "cuMemMap", {0x2000, 4096, 0, 7, 0});
    CHECK(c.of(MemoryKind::host).allocations == 0);
    CHECK(c.of(MemoryKind::vmm).held == 0);
  }
  SECTION("failed calls change nothing") {
    c.call(1, "cuMemAlloc_v2", {1, 100}, {}, 2);
    c.alloc(1, 0x1000, 100);
    c.call(1, "cuMemFree_v2", {0x1000}, {}, 1);
    CHECK(device().allocations == 1);
    CHECK(device().held == 100);
  }
  SECTION("an address that is allocated again was freed unseen") {
    c.alloc(1, 0x1000, 100);
    c.alloc(1, 0x1000, 30);
    CHECK(device().replaced == 100);
    CHECK(device().held == 30);
    CHECK(device().peak == 100);
  }
  SECTION("it goes away with its process, however that ends, and a reused pid starts anew") {
    for (auto op : {Process::Op::exit, Process::Op::exec, Process::Op::fork}) {
      Holding fresh;
      fresh.alloc(1, 0x1000, 100);
      fresh.alloc(2, 0x1000, 9);
      fresh.alloc(1, 0x7, 5, "cuMemCreate");
      fresh.happens(1, op);
      CHECK(fresh.of(MemoryKind::device).held == 9);
      CHECK(fresh.of(MemoryKind::device).with_process == 100);
      CHECK(fresh.of(MemoryKind::device).freed == 0);
      CHECK(fresh.of(MemoryKind::vmm).with_process == 5);
    }
  }
}

TEST_CASE("Memory is followed while a program runs as `memory` follows it in the trace") {
  auto seed = GENERATE(range(1U, 9U));
  const char* mode = GENERATE("run", "attach");
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  Follower stats;
  auto trace = open_sink(to_path(path));
  Session session = session_now();
  session.mode = mode;
  stats.begin(session);
  trace->begin(session);
  AnyProgram program(seed, stats, *trace);
  for (int i = 0; i < 3000; i++) program.step();
  trace->end({});

  analyze::LineParser parser;
  analyze::Memory memory(parser.names());
  analyze::each_line(parser, file_text(path),
                     [&](const analyze::Line& line) { memory.line(line); });
  MemoryByKind figures = stats.memory.figures();
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    CAPTURE(seed, mode, MEMORY_KIND_NAMES[kind]);
    CHECK(figures[kind].allocations > 10);
    CHECK(all_of(figures[kind]) == all_of(memory.all().kinds[kind]));
  }
}
