// What the library records of a call, and that it reads nothing that it may not.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "collect/probe_plan.hpp"
#include "support/wide_function.hpp"
#include "traced_process.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t PAGE = 4096;

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

// Two pages of which the second cannot be read.
class EdgeOfMemory {
 public:
  EdgeOfMemory()
      : memory_(static_cast<char*>(
            mmap(nullptr, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(mprotect(memory_ + PAGE, PAGE, PROT_NONE) == 0);
  }
  ~EdgeOfMemory() { munmap(memory_, 2 * PAGE); }
  EdgeOfMemory(const EdgeOfMemory&) = delete;
  EdgeOfMemory& operator=(const EdgeOfMemory&) = delete;

  // This many bytes before the edge.
  char* before(std::size_t bytes) { return memory_ + PAGE - bytes; }

 private:
  char* memory_;
};

// The records of one call, without what says when and where it was made.
std::vector<Record> records_of(const Plan& made, const Arguments& arguments, bool launch = false,
                               std::int32_t result = 0) {
  TracedProcess process;
  std::array<abi::cb_read, CB_MAX_READS> reads{};
  std::ranges::copy(made.reads, reads.begin());
  calling(&made.plan, reads.data(), launch, arguments.data(), result);
  return process.read_all();
}

// A plan that reads this many words, and by this row or two.
Plan plan_with(unsigned words, std::vector<abi::cb_read> reads) {
  Plan made{plan_of(words), std::move(reads)};
  for (const abi::cb_read& read : made.reads)
    made.plan.returns = made.plan.returns || read.kind == abi::CB_READ_RETURN;
  return made;
}

using Words = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("A call's words are recorded from registers and from the stack") {
  Arguments arguments{};
  for (std::size_t i = 0; i < arguments.size(); i++) arguments[i] = 100 + i;
  auto records = records_of({plan_of(CB_MAX_ARGS), {}}, arguments, false, 700);
  REQUIRE(records.size() == 2);
  CHECK(records[0].head.kind == abi::CB_ENTRY);
  CHECK(records[0].head.nargs == CB_MAX_ARGS);
  CHECK(records[0].words == Words(arguments.begin(), arguments.begin() + CB_MAX_ARGS));
  CHECK(records[1].head.kind == abi::CB_RETURN);
  CHECK(records[1].head.result == 700);
  CHECK(records[1].head.sp == records[0].head.sp);
  CHECK(records[1].words.empty());
}

TEST_CASE("Records say when the call began and ended, by either clock") {
  abi::ci_clock by = GENERATE(abi::CI_MONOTONIC, abi::CI_TICKS);
  if (by == abi::CI_TICKS && RecordClock::best() != by)
    SKIP("the kernel does not offer the time stamp counter");
  constexpr std::uint64_t EARLY = 1'000;
  TracedProcess process({}, by);
  abi::cb_plan plan = plan_of(1);
  Arguments arguments{};
  std::uint64_t last = 0;
  for (int i = 0; i < 1'000; i++) {
    std::uint64_t began = now_ns(CLOCK_MONOTONIC);
    calling(&plan, nullptr, false, arguments.data(), 0);
    std::uint64_t ended = now_ns(CLOCK_MONOTONIC);
    auto records = process.read_all();
    REQUIRE(records.size() == 2);
    REQUIRE(records[0].head.ts + EARLY >= began);
    REQUIRE(records[0].head.ts >= last);
    REQUIRE(records[1].head.ts >= records[0].head.ts);
    REQUIRE(records[1].head.ts <= ended + EARLY);
    last = records[1].head.ts;
  }
}

TEST_CASE("An array of as many words as an argument says is recorded, up to the edge of memory") {
  EdgeOfMemory edge;
  Plan plan = plan_with(2, {{abi::CB_READ_ARRAY, 1, 2, 0, 0, 25 * 8}});
  char* array = edge.before(3 * 8);
  Words values{7, 8, 9};
  std::memcpy(array, values.data(), 3 * 8);
  for (std::uint64_t count : {std::uint64_t{0}, std::uint64_t{3}}) {
    auto records = records_of(plan, {count, address_of(array)});
    CHECK(records[0].head.flags == 0);
    CHECK(records[0].head.struct_size == count * 8);
    CHECK(Words(records[0].words.begin() + 2, records[0].words.end()) ==
          Words(values.begin(), values.begin() + static_cast<long>(count)));
  }
  // One more lies beyond the edge; and no more than the plan says is read, whatever the count.
  for (std::uint64_t count : {std::uint64_t{4}, ~std::uint64_t{0}, std::uint64_t{1} << 61})
    CHECK(records_of(plan, {count, address_of(array)})[0].head.flags == abi::CB_READ_FAULT);
}

TEST_CASE("A string is recorded up to its end, or the edge of memory, or 4,096 bytes") {
  EdgeOfMemory edge;
  Plan plan = plan_with(1, {{abi::CB_READ_STRING, 0, 1, 0, 0, 0}});
  std::memcpy(edge.before(4), "abc", 4);
  auto records = records_of(plan, {address_of(edge.before(4))});
  CHECK(records[0].head.string_size == 4);
  CHECK(records[0].words[1] == 0x636261);
  std::memset(edge.before(4), 'x', 4);
  CHECK(records_of(plan, {address_of(edge.before(4))})[0].head.flags == abi::CB_READ_FAULT);
  std::string longer(2 * CB_LONG_STRING, 'y');
  records = records_of(plan, {address_of(longer.data())});
  CHECK(records[0].head.flags == abi::CB_STRING_CUT);
  CHECK(records[0].head.string_size == CB_LONG_STRING);
}

TEST_CASE("What a call writes is recorded if it succeeds") {
  Plan plan =
      plan_with(2, {{abi::CB_READ_RETURN, 0, 0, 0, 0, 8}, {abi::CB_READ_RETURN, 1, 1, 0, 0, 4}});
  std::uint64_t wide = 0x1122334455667788, narrow = 0x99aabbccddeeff00;
  auto records = records_of(plan, {address_of(&wide), address_of(&narrow)});
  CHECK(records[1].words == Words{wide, 0xddeeff00});
  CHECK(records_of(plan, {address_of(&wide), address_of(&narrow)}, false, 1)[1].words.empty());
  // A null pointer requests nothing.
  CHECK(records_of(plan, {0, address_of(&narrow)})[1].words == Words{0, 0xddeeff00});
}

TEST_CASE("Structs and arguments of any number are recorded, and what a struct points to") {
  WideInner inner{51, 52, 53, 54, 55};
  WideOuter outer{{41, 42, 43}, inner.data()};
  WideConfig config{61, 62, 63, 64, 65, 66, 67};
  std::uint64_t made = 77;
  Arguments arguments{address_of(&made), address_of(&outer)};
  for (std::size_t i = 2; i < WIDE_WORDS; i++) arguments[i] = 100 + i;
  arguments[WIDE_WORDS - 1] = address_of(config.data());
  Plan plan = plan_for(wide_function(), 1);
  auto records = records_of(plan, arguments);
  Words all(arguments.begin(), arguments.begin() + WIDE_WORDS);
  all.insert(all.end(), {41, 42, 43, address_of(inner.data()), 51, 52, 53, 54, 55});
  all.insert(all.end(), config.begin(), config.end());
  REQUIRE(records.size() == 2);
  CHECK(records[0].head.flags == 0);
  CHECK(records[0].head.nargs == WIDE_WORDS);
  CHECK(records[0].head.struct_size == 128);
  CHECK(records[0].words == all);
  CHECK(records[1].words == Words{77});

  // Reading ends at the first that fails, and the call's return is not concerned.
  outer.inner = nullptr;
  records = records_of(plan, arguments);
  CHECK(records[0].head.flags == abi::CB_READ_FAULT);
  CHECK(records[0].head.struct_size == 32);
  CHECK(records[1].words == Words{77});
}

TEST_CASE("What follows a condition is read at return only if it is met") {
  std::uint64_t handle = 5, body = 99;
  Plan plan = plan_for(*find_function("cuGraphAddNode"), 1);
  Words parameters(CB_MAX_STRUCT / 8);
  std::uint64_t& bodies = parameters[CB_NODE_BODIES_AT / 8];
  bodies = address_of(&body);
  Arguments arguments{address_of(&handle), 0, 0, 0, address_of(parameters.data())};
  CHECK(records_of(plan, arguments)[1].words == Words{5, 0});
  parameters[0] = CB_NODE_CONDITIONAL;
  auto returned = records_of(plan, arguments)[1];
  CHECK(returned.head.flags == 0);
  CHECK(returned.words == Words{5, CB_NODE_CONDITIONAL, bodies, 99});
  bodies = 8;
  returned = records_of(plan, arguments)[1];
  CHECK(returned.head.flags == abi::CB_READ_FAULT);
  CHECK(returned.words == Words{5, CB_NODE_CONDITIONAL, 8});
}

TEST_CASE("An array that a call fills in is recorded as far as an argument says, and no further") {
  EdgeOfMemory edge;
  Plan plan = plan_for(*find_function("ncclCommInitAll"), 1);
  char* array = edge.before(3 * 8);
  Words handles{7, 8, 9};
  std::memcpy(array, handles.data(), 3 * 8);
  constexpr std::uint64_t GARBAGE = 0xdead'0000'0000;  // in an int's upper half
  std::array<std::int32_t, 3> devices{5, 0, 3};
  auto records = records_of(plan, {address_of(array), GARBAGE | 3, address_of(devices.data())});
  CHECK(records[0].head.flags == 0);
  CHECK(records[0].head.struct_size == 3 * 4);
  CHECK(Words(records[0].words.begin() + 3, records[0].words.end()) == Words{5, 3});
  CHECK(records[1].head.flags == 0);
  CHECK(records[1].words == handles);

  // No devices, and no more than there is room for; a call that failed has made nothing.
  Words many(CB_MAX_LISTED + 1);
  records = records_of(plan, {address_of(many.data()), GARBAGE | many.size(), 0});
  CHECK(records[0].head.flags == 0);
  CHECK(records[0].head.struct_size == 0);
  CHECK(records[1].words.size() == CB_MAX_LISTED);
  CHECK(records_of(plan, {address_of(array), 3, 0}, false, 1)[1].words.empty());
  CHECK(records_of(plan, {0, 3, 0})[1].words.empty());

  // One more lies beyond the edge.
  records = records_of(plan, {address_of(array), 4, address_of(edge.before(4))});
  CHECK(records[0].head.flags == abi::CB_READ_FAULT);
  CHECK(records[1].head.flags == abi::CB_READ_FAULT);
  CHECK(records[1].words.empty());
}

TEST_CASE("Pointers to nowhere are faults, and nothing else") {
  EdgeOfMemory edge;
  Plan plan =
      plan_with(3, {{abi::CB_READ_RETURN, 0, 0, 0, 0, 8}, {abi::CB_READ_STRING, 1, 3, 0, 0, 0}});
  for (std::uint64_t nowhere : {std::uint64_t{8}, address_of(edge.before(0)), ~std::uint64_t{7},
                                address_of(edge.before(4)), std::uint64_t{1} << 63}) {
    auto records = records_of(plan, {nowhere, nowhere});
    REQUIRE(records.size() == 2);
    CHECK(records[1].head.flags == abi::CB_READ_FAULT);
    CHECK(records[1].words.empty());
  }
}

TEST_CASE("A kernel's name is recorded at its first launch, and again when handles are new") {
  const char* name = "kernel";
  std::uint64_t function[2] = {0, address_of(name)};
  abi::cb_plan plan = plan_of(1), unload = plan_of(1);
  plan.handle_arg = 0;
  unload.forgets_names = 1;
  TracedProcess process;
  Arguments arguments{address_of(function)};
  auto names = [&] {
    std::size_t count = 0;
    for (const Record& record : process.read_all()) count += record.head.kind == abi::CB_NAME;
    return count;
  };
  for (std::size_t wanted : {1u, 0u}) {
    calling(&plan, nullptr, true, arguments.data(), 0);
    CHECK(names() == wanted);
  }
  calling(&unload, nullptr, false, arguments.data(), 0);
  calling(&plan, nullptr, true, arguments.data(), 0);
  CHECK(names() == 1);
}

namespace {

constexpr std::uint64_t HANDLE = 0xb1a5;
// What is set in all handles, and what asking returns.
std::uint64_t stream_set = 0;
std::uint32_t math_set = 0;
int asked = 0;

int stream_of(std::uint64_t, std::uint64_t* stream) { return *stream = stream_set, asked; }
int math_of(std::uint64_t, std::uint32_t* math) { return *math = math_set, errno = 1, asked; }

}  // namespace

TEST_CASE("What is set in a handle is recorded before a product if it is not known") {
  abi::cb_plan plan = plan_of(1);
  TracedProcess process;
  auto told = [&](std::uint64_t handle = HANDLE) {
    std::vector<std::array<std::uint64_t, 3>> all;
    errno = 0;
    calling_with_handle(&plan, handle, reinterpret_cast<const void*>(stream_of),
                        reinterpret_cast<const void*>(math_of));
    CHECK(errno == 0);
    for (const Record& record : process.read_all())
      if (record.head.kind == abi::CB_BLAS_HANDLE)
        all.push_back({record.words.at(0), record.words.at(1), record.words.at(2)});
    return all;
  };
  using All = std::vector<std::array<std::uint64_t, 3>>;
  stream_set = 5, math_set = 3;
  CHECK(told() == All{{HANDLE, 5, 3}});
  CHECK(told().empty());
  stream_set = 6;
  CHECK(told() == All{{HANDLE, 6, 3}});
  math_set = 0;
  CHECK(told() == All{{HANDLE, 6, 0}});
  CHECK(told(HANDLE + 1) == All{{HANDLE + 1, 6, 0}});
  asked = 1;
  stream_set = 7;
  CHECK(told().empty());  // it is no handle
  asked = 0;
  CHECK(told() == All{{HANDLE, 7, 0}});
  // Records that are lost may have been such.
  while (!process.counted(abi::CB_DROPPED_ENTRY))
    calling_with_handle(&plan, HANDLE, reinterpret_cast<const void*>(stream_of),
                        reinterpret_cast<const void*>(math_of));
  process.read_all();
  CHECK(told() == All{{HANDLE, 7, 0}});
  CHECK(told().empty());
}

TEST_CASE("Memory on the stack is read where it is mapped") {
  EdgeOfMemory edge;
  std::uint64_t word = 0;
  TracedProcess process;
  // As if the stack ended there.
  std::uint64_t sp = address_of(edge.before(PAGE - 64));
  std::memset(edge.before(8), 0x55, 8);
  CHECK(ci_read(&word, address_of(edge.before(8)), 8, sp));
  CHECK(word == 0x5555555555555555);
  CHECK(!ci_read(&word, address_of(edge.before(4)), 8, sp));
  CHECK(!ci_read(&word, address_of(edge.before(0)), 1, sp));
  CHECK(ci_read(&word, 0, 0, sp));
}

namespace {

// From here on, this process cannot ask the kernel for its own memory.
bool forbid_reading() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

TEST_CASE("A thread's stack is looked up in the kernel once, however deep calls come from") {
  constexpr std::size_t PAGES = 64;  // the lowest cannot be read
  auto* stack = static_cast<char*>(
      mmap(nullptr, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mprotect(stack, PAGE, PROT_NONE) == 0);
  TracedProcess process;
  std::uint64_t word = 0;
  auto read_at = [&](std::size_t page) {
    std::uint64_t sp = address_of(stack + page * PAGE + 64);
    return ci_read(&word, sp + 32, 8, sp) && ci_read(&word, sp + 8, 4, sp);
  };
  for (std::size_t page : {40, 10, 50, 39, 41}) CHECK(read_at(page));
  pid_t child = fork();
  if (child == 0) {
    bool known = forbid_reading();
    for (std::size_t page = 10; page <= 50; page++) known = known && read_at(page);
    _exit(known && !read_at(9) && !read_at(51) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(read_at(1));
  CHECK_FALSE(read_at(0));
  munmap(stack, PAGES * PAGE);
}

TEST_CASE("What brk() has given is read without the kernel, and nothing beyond it") {
  constexpr std::uint64_t VALUE = 0x1234567890abcdef;
  auto* given = static_cast<std::uint64_t*>(sbrk(PAGE));
  REQUIRE(given != reinterpret_cast<void*>(-1));
  *given = VALUE;
  auto* mapped = static_cast<std::uint64_t*>(
      mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  TracedProcess process;
  pid_t child = fork();
  if (child == 0) {
    std::uint64_t word = 0, end = address_of(sbrk(0)), sp = address_of(&word) - 1;
    bool known = forbid_reading();
    auto reads = [&](std::uint64_t from) { return ci_read(&word, from, sizeof(word), sp); };
    known = known && reads(address_of(given)) && word == VALUE && reads(end - 8);
    _exit(known && !reads(end) && !reads(end - 4) && !reads(address_of(mapped)) ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  munmap(mapped, PAGE);
}

TEST_CASE("Of structs in several places, those before the first that cannot be read are recorded") {
  EdgeOfMemory edge;
  std::memset(edge.before(16), 0x55, 16);
  std::uint64_t good = address_of(edge.before(8)), bad = address_of(edge.before(0));
  auto structs = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    Plan plan = plan_with(3, {{abi::CB_READ_STRUCT, 0, 3, 0, 0, 8},
                              {abi::CB_READ_STRUCT, 1, 4, 0, 0, 8},
                              {abi::CB_READ_STRUCT, 2, 5, 0, 0, 8}});
    auto records = records_of(plan, {a, b, c});
    REQUIRE(records.size() == 2);
    return std::pair<int, int>(records[0].head.struct_size, records[0].head.flags);
  };
  CHECK(structs(good, good - 8, good) == std::pair<int, int>(24, 0));
  CHECK(structs(good, bad, good) == std::pair<int, int>(8, abi::CB_READ_FAULT));
  CHECK(structs(bad, good, good) == std::pair<int, int>(0, abi::CB_READ_FAULT));
  CHECK(structs(good, good, bad) == std::pair<int, int>(16, abi::CB_READ_FAULT));
}

TEST_CASE("A gap is where nothing is, within reach of all of the library") {
  std::uint64_t here = address_of(reinterpret_cast<const void*>(&ci_find_gap));
  for (std::uint64_t size : {PAGE, 64 * PAGE, std::uint64_t{64} << 20}) {
    std::uint64_t from = here & ~(PAGE - 1), to = from + 16 * PAGE,
                  gap = ci_find_gap(from, to, size);
    REQUIRE(gap);
    CHECK(gap % PAGE == 0);
    CHECK((gap > from ? gap + size - from : to - gap) < std::uint64_t{1} << 31);
    void* taken = mmap(reinterpret_cast<void*>(gap), size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    REQUIRE(address_of(taken) == gap);
    munmap(taken, size);
  }
  CHECK(ci_find_gap(here, here + (std::uint64_t{1} << 33), PAGE) == 0);
  CHECK(ci_find_gap(here, here + PAGE, std::uint64_t{1} << 33) == 0);
}
