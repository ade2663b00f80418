#include "correlate/learners/kernel_names.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint32_t PID = 100;
constexpr KernelNames::Owner MODULE{.handle = 0xa00, .in_context = true};
constexpr KernelNames::Owner LIBRARY{.handle = 0xb00, .in_context = false};

// A name and where it comes from; empty: none.
std::string name_of(const KernelNames& names, std::uint64_t handle, std::uint32_t pid = PID) {
  const KernelName* name = names.find(pid, handle);
  if (!name) return "";
  return name->full + (name->from_handle ? " from handle" : "");
}

const std::vector<std::uint64_t> LAUNCH = {0x5500, 1, 1, 1, 1, 1, 1, 0, 0};

std::string launched(Correlating& c, std::uint64_t ts, Head head = {}) {
  head.ts = ts;
  c.call(head, "cuLaunchKernel", LAUNCH);
  const KernelName* name = c.last().kernel;
  return name ? name->full + (name->from_handle ? " from handle" : "") : "";
}

}  // namespace

TEST_CASE("Names that calls resolve") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  CHECK(name_of(names, 1).empty());
  names.learned(PID, 1, MODULE, {"_Z4axpyPfi"}, 10);
  const KernelName* name = names.find(PID, 1);
  REQUIRE(name);
  CHECK(name->mangled == "_Z4axpyPfi");
  CHECK(name->full == "axpy(float*, int)");
  CHECK(name->short_name == "axpy");
  CHECK(name->json == "\"axpy(float*, int)\"");
  CHECK_FALSE(name->from_handle);
  CHECK(name_of(names, 2).empty());
  CHECK(name_of(names, 1, 101).empty());

  names.learned(101, 1, MODULE, {"other"}, 10);  // the same handle in another process
  CHECK(name_of(names, 1) == "axpy(float*, int)");
  CHECK(name_of(names, 1, 101) == "other");
  names.process_gone(PID);
  CHECK(name_of(names, 1).empty());
  CHECK(name_of(names, 1, 101) == "other");
  names.learned(101, 1, MODULE, {"newer"}, 11);
  CHECK(name_of(names, 1, 101) == "newer");
}

TEST_CASE("A name longer than what is read of it is its beginning") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.learned(PID, 1, MODULE, {"_Z4axpyPfi", true}, 10);
  CHECK(names.find(PID, 1)->full == "_Z4axpyPfi…");
  names.read_from_handle(PID, 1, {"_Z4axpyPfi", true}, 11);
  CHECK(names.counts().confirmed == 1);
  names.read_from_handle(PID, 1, {"_Z4axpyPfi"}, 11);
  CHECK(names.counts().contradicted == 1);
}

TEST_CASE("Names read from handles") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.read_from_handle(PID, 1, {"_Z4axpyPfi"}, 10);
  CHECK(name_of(names, 1) == "axpy(float*, int) from handle");
  SECTION("must look like one") {
    for (auto wrong : {"", "two words", "9lives", "\x01\x02", "caf\xc3\xa9"}) {
      names.read_from_handle(PID, 2, {wrong}, 10);
      CHECK(name_of(names, 2).empty());
    }
    names.read_from_handle(PID, 1, {"two words"}, 11);  // so the handle is another function's now
    CHECK(name_of(names, 1).empty());
  }
  SECTION("yield to learned ones") {
    names.learned(PID, 1, MODULE, {"learned"}, 12);
    CHECK(name_of(names, 1) == "learned");
    names.read_from_handle(PID, 1, {"learned"}, 13);
    CHECK(name_of(names, 1) == "learned");
    CHECK(names.counts().confirmed == 1);
    CHECK(names.counts().contradicted == 0);
    names.read_from_handle(PID, 1, {""}, 14);  // says nothing
    CHECK(names.counts().contradicted == 0);
  }
  SECTION("are believed no more in a process where one was wrong") {
    names.learned(PID, 2, MODULE, {"right"}, 12);
    names.read_from_handle(PID, 2, {"wrong"}, 13);
    CHECK(names.counts().contradicted == 1);
    CHECK(name_of(names, 2) == "right");
    CHECK(name_of(names, 1).empty());
    names.read_from_handle(PID, 2, {"right"}, 14);
    CHECK(name_of(names, 1).empty());
  }
  SECTION("nor in one that has not confirmed any, while another contradicts") {
    names.read_from_handle(102, 1, {"plain"}, 10);
    names.learned(102, 2, MODULE, {"right"}, 11);
    names.read_from_handle(102, 2, {"right"}, 12);
    names.learned(101, 2, MODULE, {"right"}, 12);
    names.read_from_handle(101, 2, {"wrong"}, 13);
    CHECK(name_of(names, 1).empty());
    CHECK(name_of(names, 1, 102) == "plain from handle");
  }
}

TEST_CASE("Unloading a module or library forgets its kernels, and all that may be its") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.learned(PID, 1, MODULE, {"mine"}, 10);
  names.learned(PID, 2, {.handle = 0xa01, .in_context = true}, {"another"}, 10);
  names.read_from_handle(PID, 3, {"read"}, 10);
  names.learned(101, 1, MODULE, {"elsewhere"}, 10);
  names.owner_unloaded(PID, 0xa00, 20);
  CHECK(name_of(names, 1).empty());
  CHECK(name_of(names, 2) == "another");
  CHECK(name_of(names, 3).empty());
  CHECK(name_of(names, 1, 101) == "elsewhere");
  names.owner_unloaded(999, 0xa00, 20);  // an unknown process
}

TEST_CASE("What other threads learn while an unload runs stays") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.read_from_handle(PID, 1, {"before"}, 10);
  names.read_from_handle(PID, 2, {"during"}, 21);
  names.learned(PID, 3, MODULE, {"reused"}, 22);  // even the module's handle is reused
  names.owner_unloaded(PID, 0xa00, 20);
  CHECK(name_of(names, 1).empty());
  CHECK(name_of(names, 2) == "during from handle");
  CHECK(name_of(names, 3) == "reused");
  names.context_destroyed(PID, 21);
  CHECK(name_of(names, 2) == "during from handle");
  names.context_destroyed(PID, 30);
  CHECK(name_of(names, 2).empty());
}

TEST_CASE("A context takes functions with it, not a library's kernels") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.learned(PID, 1, MODULE, {"function"}, 10);
  names.learned(PID, 2, LIBRARY, {"kernel"}, 10);
  names.learned_alias(PID, 3, 2, 11);
  CHECK(name_of(names, 3) == "kernel");
  names.context_destroyed(PID, 20);
  CHECK(name_of(names, 1).empty());
  CHECK(name_of(names, 2) == "kernel");
  CHECK(name_of(names, 3).empty());
  names.learned_alias(PID, 3, 2, 21);
  names.owner_unloaded(PID, 0xb00, 30);
  CHECK(name_of(names, 2).empty());
  CHECK(name_of(names, 3).empty());
}

TEST_CASE("An alias of what is not known makes its handle unknown") {
  Bounds bounds{Limits{}};
  KernelNames names(bounds);
  names.learned(PID, 3, MODULE, {"old"}, 10);
  names.learned_alias(PID, 3, 77, 11);
  CHECK(name_of(names, 3).empty());
  names.read_from_handle(PID, 5, {"read"}, 12);
  names.learned_alias(PID, 6, 5, 13);
  CHECK(name_of(names, 6) == "read from handle");
}

TEST_CASE("What a kernel's linker name may look like") {
  for (auto good : {"a", "_Z3foov", "axpy.cold", "$ptx%1", "f@@v"})
    CHECK(plausible_kernel_name(good));
  for (auto bad : {"", "1a", "a b", "a\n", "a(int)", "a\xff"})
    CHECK_FALSE(plausible_kernel_name(bad));
}

TEST_CASE("Launches are named by the calls that resolved their handles") {
  Correlating c;
  CHECK(launched(c, 5).empty());
  c.call({.ts = 10}, "cuModuleGetFunction", {1, 0xa00, 3}, {0x5500}, 0, "_Z4axpyPfi");
  CHECK(launched(c, 200) == "axpy(float*, int)");
  CHECK(launched(c, 210, {.pid = 101, .tid = 300}).empty());

  SECTION("a call that failed resolves nothing") {
    c.call({.ts = 300}, "cuModuleGetFunction", {1, 0xa00, 3}, {}, 500, "missing");
    CHECK(launched(c, 400) == "axpy(float*, int)");
  }
  SECTION("until their module is unloaded") {
    c.call({.ts = 300}, "cuModuleUnload", {0xa01});
    CHECK(launched(c, 400) == "axpy(float*, int)");
    c.call({.ts = 500}, "cuModuleUnload", {0xa00}, {}, 1);
    CHECK(launched(c, 600) == "axpy(float*, int)");
    c.call({.ts = 700}, "cuModuleUnload", {0xa00});
    CHECK(launched(c, 800).empty());
    c.call({.ts = 900}, "cuModuleGetFunction", {1, 0xa00, 3}, {0x5500}, 0, "reused");
    CHECK(launched(c, 1100) == "reused");
  }
  SECTION("or their context destroyed") {
    c.call({.ts = 300}, "cuCtxDestroy_v2", {0x1});
    CHECK(launched(c, 400).empty());
  }
  SECTION("or an unload's return was lost, so that it may have been") {
    c.feed(entry({.ts = 300}, "cuModuleUnload", {0xa00}));
    CHECK(launched(c, 400, {.drops = 1}).empty());
  }
  SECTION("or an unload's entry was lost: then any may be gone") {
    c.feed(returned({.ts = 300, .drops = 1}, "cuLibraryUnload"));
    CHECK(launched(c, 400, {.drops = 1}).empty());
  }
  SECTION("or the handle came back with a name that was not seen") {
    SECTION("since the entry was lost") {
      c.feed(returned({.ts = 300, .drops = 1}, "cuModuleGetFunction", 0, {0x5500}));
    }
    SECTION("since the name could not be read") {
      c.call({.ts = 300}, "cuModuleGetFunction", {1, 0xa00, 3}, {0x5500});
    }
    CHECK(launched(c, 500, {.drops = 1}).empty());
  }
  SECTION("or the process runs another program") {
    c.feed(process({.ts = 300}, abi::CB_EXEC));
    CHECK(launched(c, 400).empty());
  }
}

TEST_CASE("Launches of a library's kernels, by kernel and by function") {
  Correlating c;
  c.call({.ts = 10}, "cuLibraryGetKernel", {1, 0xb00, 3}, {0x4400}, 0, "kern");
  c.call({.ts = 200}, "cuKernelGetFunction", {1, 0x4400}, {0x5500});
  CHECK(launched(c, 400) == "kern");
  c.call({.ts = 500}, "cuDevicePrimaryCtxReset_v2", {0});
  CHECK(launched(c, 700).empty());
  c.call({.ts = 800}, "cuKernelGetFunction", {1, 0x4400}, {0x5500});
  CHECK(launched(c, 1000) == "kern");
  c.call({.ts = 1100}, "cuLibraryUnload", {0xb00});
  CHECK(launched(c, 1300).empty());
}

TEST_CASE("Launches are named by their handle where nothing else is known") {
  Correlating c;
  c.feed(name({.ts = 10}, 0x5500, "_Z4axpyPfi"));
  CHECK(launched(c, 20) == "axpy(float*, int) from handle");
  c.feed(name({.ts = 30}, 0x5500, ""));
  CHECK(launched(c, 40).empty());
  c.feed(name({.ts = 50, .flags = abi::CB_STRING_CUT}, 0x5500, "_Z4axpy"));
  CHECK(launched(c, 60) == "_Z4axpy… from handle");
  CHECK(c.sink.processes.size() == 1);
}

TEST_CASE("A handle of memory is no kernel's, whatever its number") {
  Correlating c;
  c.call({.ts = 10}, "cuModuleGetFunction", {1, 0xa00, 3}, {0x5500}, 0, "kern");
  c.call({.ts = 20}, "cuMemMap", {0x7000, 4096, 0, 0x5500, 0});
  CHECK(c.last().details.handle == 0x5500);
  CHECK(c.last().kernel == nullptr);
}

TEST_CASE("Names that no handle has any more give way to others, and those in use stay") {
  Limits limits;
  limits.of(Kept::kernel_names) = 4;
  Correlating c({.limits = limits});
  auto resolve = [&](std::uint64_t handle, const char* name, std::uint64_t module = 0xa00) {
    c.call({.ts = 100}, "cuModuleGetFunction", {0x1, module, 0x2}, {handle}, 0, name);
  };
  auto launched = [&](std::uint64_t handle) {
    c.call({.ts = 5000}, "cuLaunchKernel", {handle, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
    return c.last().kernel ? c.last().kernel->full : "";
  };
  for (std::uint64_t i = 1; i <= 4; i++) resolve(i, ("k" + std::to_string(i)).c_str());
  // A launch that is open while its name's handle goes.
  c.feed(entry({.ts = 200, .tid = 101}, "cuLaunchKernel", {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}));
  SECTION("there is no space") {
    resolve(5, "k5");
    CHECK(launched(5).empty());
    resolve(1, "k6");  // its former name is no longer true
    CHECK(launched(1).empty());
    CHECK(launched(2) == "k2");
    CHECK(c.correlator.bounds().all_left_out(Kept::kernel_names) == 2);
  }
  SECTION("and again there is") {
    c.call({.ts = 1000}, "cuModuleUnload", {0xa00});
    for (std::uint64_t i = 5; i <= 7; i++) resolve(i, ("k" + std::to_string(i)).c_str(), 0xa01);
    CHECK(launched(5) == "k5");
    CHECK(launched(7) == "k7");
    CHECK(launched(2).empty());
    CHECK(c.correlator.bounds().all_left_out(Kept::kernel_names) == 0);
  }
  c.feed(returned({.ts = 300, .tid = 101}, "cuLaunchKernel"));
  REQUIRE(c.last().kernel);
  CHECK(c.last().kernel->full == "k1");
}

TEST_CASE("Names are bounded in bytes, too") {
  Limits limits;
  limits.of(Kept::name_bytes) = 10'000;
  Bounds bounds(limits);
  KernelNames names(bounds);
  for (std::uint64_t i = 0; i < 100; i++)
    names.learned(PID, i, MODULE, {std::string(1000, 'x') + std::to_string(i)}, 1);
  CHECK(names.find(PID, 0));
  CHECK_FALSE(names.find(PID, 99));
  CHECK(bounds.all_left_out(Kept::name_bytes) > 90);
}

TEST_CASE("The process with the most handles of kernels loses its own") {
  Limits limits;
  limits.of(Kept::kernel_handles) = 10;
  Bounds bounds(limits);
  KernelNames names(bounds);
  for (std::uint64_t i = 0; i < 10; i++) names.learned(PID, i, MODULE, {"many"}, 1);
  names.learned(PID, 11, MODULE, {"many"}, 1);  // it has most: what it knew is still true
  CHECK_FALSE(names.find(PID, 11));
  CHECK(name_of(names, 9) == "many");
  names.learned(PID + 1, 1, MODULE, {"other"}, 1);
  CHECK(name_of(names, 1, PID + 1) == "other");
  CHECK_FALSE(names.find(PID, 9));
  CHECK(bounds.all_left_out(Kept::kernel_handles) == 11);
  names.learned(PID, 11, MODULE, {"many"}, 1);  // there is space again
  CHECK(name_of(names, 11) == "many");
  names.process_gone(PID + 1);
  for (std::uint64_t i = 0; i < 10; i++) names.learned(PID, i + 11, MODULE, {"many"}, 1);
  CHECK(bounds.all_left_out(Kept::kernel_handles) == 11);
}

TEST_CASE("What is unused is looked for again only after many names were refused") {
  Limits limits;
  limits.of(Kept::kernel_names) = 2;
  Bounds bounds(limits);
  KernelNames names(bounds);
  names.learned(PID, 1, MODULE, {"one"}, 1);
  CHECK_FALSE(names.want_room());
  names.learned(PID, 2, MODULE, {"two"}, 1);
  CHECK(names.want_room());
  names.forget_unused({});
  CHECK_FALSE(names.want_room());
  names.learned(PID, 1, MODULE, {"two"}, 1);  // one that is known needs no space
  CHECK(name_of(names, 1) == "two");
  for (std::uint64_t i = 0; i < 4095; i++) {
    CHECK_FALSE(names.want_room());
    names.learned(PID, 3, MODULE, {"three"}, 1);
  }
  CHECK(names.want_room());
  names.forget_unused({});
  names.learned(PID, 3, MODULE, {"three"}, 1);
  CHECK(name_of(names, 3) == "three");
}
