#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collect/unwind_tables.hpp"
#include "cudabpf/holders.h"
#include "util/system/fd.hpp"
#include "util/system/procfs.hpp"

using namespace cudabpf;

namespace {

// As a library is compiled, whatever the test is; clang does not take that for one function.
#ifdef __clang__
#define NOINLINE __attribute__((noinline, no_stack_protector, no_sanitize("address", "undefined")))
#else
#define NOINLINE \
  __attribute__((noinline, noclone, no_stack_protector, optimize("O2", "omit-frame-pointer")))
#endif

// A frame as it stands at a call, and those around it by their own account.
struct Standing {
  unwind::cu_frame frame{};
  std::vector<std::uint64_t> stack;
  std::vector<std::uint64_t> returns;  // the innermost first
};

NOINLINE void look(Standing& seen) {
  auto* top = static_cast<std::uint64_t*>(__builtin_frame_address(0));  // rbp, the return address
  seen.frame = {top[1], reinterpret_cast<std::uint64_t>(top + 2), top[0], true};
  seen.stack.resize(256);
  std::uint64_t* copy = seen.stack.data();
  for (int i = 0; i < 256; i++) copy[i] = static_cast<volatile std::uint64_t*>(top)[i + 2];
}
#define NOTE_RETURN()                       \
  seen.returns.insert(seen.returns.begin(), \
                      reinterpret_cast<std::uint64_t>(__builtin_return_address(0)))

NOINLINE int pushing(Standing& seen, int depth) {
  NOTE_RETURN();
  long a = depth, b = depth + 1, c = depth + 2, d = depth + 3, e = depth + 4;
  if (depth)
    pushing(seen, depth - 1);
  else
    look(seen);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  return static_cast<int>(a + b + c + d + e);
}
NOINLINE int varying(Standing& seen, std::size_t size) {
  NOTE_RETURN();
  auto* room = static_cast<char*>(__builtin_alloca(size));
  std::memset(room, 1, size);
  int sum = pushing(seen, 2) + room[size / 2];
  asm volatile("" : : "r"(room) : "memory");
  return sum;
}
NOINLINE int early(Standing& seen, int way) {
  NOTE_RETURN();
  if (way == 3) return 0;
  volatile char room[200];
  room[way] = 2;
  int sum = varying(seen, 40);
  return sum + room[way];
}

struct OwnCode {
  OwnCode() {
    for (const Mapping& mapping : Procfs().maps(getpid()))
      if (mapping.executable() && at - mapping.start < mapping.end - mapping.start) code = mapping;
  }
  std::uint64_t at = reinterpret_cast<std::uint64_t>(&look);
  Mapping code;
  // With the sanitizers it has 200 MB, so only what is asked for is read.
  Fd fd{open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  std::shared_ptr<const elf::Source> file =
      elf::bytes_of_file(fd.get(), std::filesystem::file_size("/proc/self/exe"));

  std::vector<std::uint64_t> unwound(const UnwindTables& tables, const Standing& seen) const {
    unwind::cu_memory stack{reinterpret_cast<const std::uint8_t*>(seen.stack.data()), seen.frame.sp,
                            seen.stack.size() * 8};
    std::vector<std::uint64_t> found;
    unwind::cu_frame frame = seen.frame;
    while (found.size() < seen.returns.size() &&
           tables.step(frame.ip - 1 - code.start + code.offset, stack, frame))
      found.push_back(frame.ip);
    return found;
  }
};

Standing seen_from_inside() {
  Standing seen;
  early(seen, static_cast<int>(seen.returns.size()));
  return seen;
}

}  // namespace

TEST_CASE("frames of compiled code are unwound without frame pointers", "[unwind]") {
  OwnCode own;
  auto tables = UnwindTables::read(*own.file);
  REQUIRE(tables);
  Standing seen = seen_from_inside();
  REQUIRE(seen.returns.size() == 5);
  CHECK(own.unwound(*tables, seen) == seen.returns);
}

TEST_CASE("a frame beyond what is known of the stack is not known", "[unwind]") {
  OwnCode own;
  auto tables = UnwindTables::read(*own.file);
  REQUIRE(tables);
  for (std::size_t words = 0; words < 40; words++) {
    Standing seen = seen_from_inside();
    seen.stack.resize(words);
    auto found = own.unwound(*tables, seen);
    REQUIRE(found.size() <= seen.returns.size());
    CHECK(std::equal(found.begin(), found.end(), seen.returns.begin()));
  }
}

TEST_CASE("where rbp is not known, a frame that begins at it is not", "[unwind]") {
  OwnCode own;
  auto tables = UnwindTables::read(*own.file);
  REQUIRE(tables);
  Standing seen = seen_from_inside();
  seen.frame.bp_known = false;
  CHECK(own.unwound(*tables, seen).size() < seen.returns.size());
}

TEST_CASE("tables with any bytes are only not understood", "[unwind]") {
  OwnCode own;
  auto whole = UnwindTables::read(*own.file);
  REQUIRE(whole);
  Standing seen = seen_from_inside();
  std::mt19937 random(7);
  auto any = [&](std::size_t below) { return random() % below; };
  std::vector<std::byte> small(4096);  // headers
  REQUIRE(own.file->read(0, small));
  for (int i = 0; i < 3000; i++) {
    auto broken = small;
    for (int j = 0; j < 4; j++) broken[64 + any(700)] = static_cast<std::byte>(any(256));
    if (auto tables = UnwindTables::read(*elf::bytes_in_memory(broken))) own.unwound(*tables, seen);
  }
}

namespace {

// A file of one segment: its header, a table of one entry, a CIE and an FDE for code at 0x1000.
struct Handmade {
  std::vector<std::uint8_t> program;                         // the FDE's instructions
  std::vector<std::uint8_t> common = {0x0c, 7, 8, 0x90, 1};  // def_cfa rsp+8, r16 at cfa-8
  std::string letters = "zR";
  std::uint8_t return_register = 16;
  std::vector<std::uint8_t> bytes;

  void put(std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; i++) bytes.push_back(static_cast<std::uint8_t>(value >> i * 8));
  }
  void put_all(const std::vector<std::uint8_t>& all) {
    bytes.insert(bytes.end(), all.begin(), all.end());
  }
  void set(std::size_t at, std::uint32_t value) { std::memcpy(&bytes[at], &value, 4); }

  // Whether the frame above one at 0x1004 is found, and where it returns to.
  std::uint64_t returns_to(std::uint64_t bp = 0) {
    bytes.clear();
    constexpr std::uint64_t AT = 0x5000, TEXT = 0x1000;
    for (std::uint64_t byte : {1, 0x1b, 3, 0x3b}) put(byte, 1);
    put(0, 4), put(1, 4), put(TEXT - AT, 4);
    std::size_t entry_at = bytes.size();
    put(0, 4);
    std::size_t common_at = bytes.size();
    put(0, 4), put(0, 4), put(1, 1);
    for (char letter : letters) put(static_cast<std::uint8_t>(letter), 1);
    put(0, 1), put(1, 1), put(0x78, 1), put(return_register, 1), put(1, 1), put(0x1b, 1);
    put_all(common);
    set(common_at, static_cast<std::uint32_t>(bytes.size() - common_at - 4));
    std::size_t entry = bytes.size();
    set(entry_at, static_cast<std::uint32_t>(entry));
    put(0, 4), put(entry + 4 - common_at, 4);
    put(TEXT - (AT + bytes.size()), 4), put(0x100, 4), put(0, 1);
    put_all(program);
    set(entry, static_cast<std::uint32_t>(bytes.size() - entry - 4));
    unwind::cu_memory tables{bytes.data(), AT, bytes.size()};
    std::vector<std::uint64_t> words = {11, 12, 13, 14, 15, 16, 17, 18};
    unwind::cu_memory stack{reinterpret_cast<const std::uint8_t*>(words.data()), 0x8000, 64};
    unwind::cu_frame frame{TEXT + 4, 0x8000, bp, bp != 0};
    return unwind::cu_step(&tables, AT, &stack, &frame) ? frame.ip : 0;
  }
};

}  // namespace

TEST_CASE("each instruction of the tables is followed, or the frame is not known", "[unwind]") {
  using Program = std::vector<std::uint8_t>;
  auto with = [](Program program, std::uint64_t bp = 0) {
    return Handmade{.program = std::move(program), .bytes = {}}.returns_to(bp);
  };
  CHECK(with({}) == 11);
  CHECK(with({0x0e, 24}) == 13);                        // def_cfa_offset
  CHECK(with({0x41, 0x0e, 24, 0x44, 0x0e, 32}) == 13);  // the second is for later code
  CHECK(with({0x02, 1, 0x0e, 16, 0x03, 9, 0, 0x0e, 40}) == 12);
  CHECK(with({0x0a, 0x0e, 40, 0x41, 0x0b}) == 11);  // remember, restore
  CHECK(with({0x0c, 6, 16}, 0x8010) == 14);         // from rbp
  CHECK(with({0x0c, 6, 16}) == 0);                  // which is not known
  CHECK(with({0x0d, 6, 0x0e, 16}, 0x8018) == 15);
  CHECK(with({0x12, 7, 0x7d}) == 13);  // def_cfa_sf: -3 * -8
  CHECK(with({0x13, 0x7e}) == 12);
  CHECK(with({0x2e, 8, 0x0e, 16}) == 12);  // GNU_args_size
  CHECK(with({0x05, 16, 1}) == 11);
  CHECK(with({0x05, 16, 2}) == 0);       // the return address is elsewhere
  CHECK(with({0x07, 16}) == 0);          // or nowhere: the outermost frame
  CHECK(with({0x0f, 2, 0x77, 8}) == 0);  // expressions
  CHECK(with({0x10, 16, 1, 0x50}) == 0);
  CHECK(with({0x10, 3, 1, 0x50}) == 11);  // of a register that is of no use here
  CHECK(with({0x16, 7, 1, 0x50}) == 0);   // where its caller's stack is
  CHECK(with({0x0b}) == 0);               // nothing was remembered
  CHECK(with(Program(20, 0x0a)) == 0);    // too much is
  CHECK(with({0x3f}) == 0);               // unknown
  CHECK(with({0x0e}) == 0);               // cut
  CHECK(with({0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}) == 0);
  CHECK(with({0x0e, 0}) == 0);              // no frame above
  CHECK(with({0x0e, 12}) == 0);             // not aligned
  CHECK(with({0x0e, 72}) == 0);             // beyond the stack
  CHECK(with({0x0c, 6, 16}, 0x7000) == 0);  // below it
  CHECK(with({0x0c, 6, 8}, ~std::uint64_t{7}) == 0);
}

TEST_CASE("other kinds of tables are not understood", "[unwind]") {
  CHECK(Handmade{.program = {}, .letters = "zRS", .bytes = {}}.returns_to() == 0);  // of a signal
  CHECK(Handmade{.program = {}, .letters = "", .bytes = {}}.returns_to() == 0);
  CHECK(Handmade{.program = {}, .return_register = 15, .bytes = {}}.returns_to() == 0);
  CHECK(Handmade{.program = {}, .common = {}, .bytes = {}}.returns_to() == 0);
}

TEST_CASE("CUDA's runtime and the driver hold nothing themselves", "[unwind]") {
  using unwind::cu_passes_on;
  for (const char* file : {"libcudart.so.12", "libcudart.so.12.4.127", "libcudart.so",
                           "libcuda.so.1", "libcuda.so.580.159.04", "libcudabpf-inside.so"})
    CHECK(cu_passes_on(file));
  for (const char* file : {"libcudart-d0da41ae.so.11.0", "libcudadebugger.so.1", "libnccl.so.2",
                           "libcudartx.so", "python3.11", ""})
    CHECK_FALSE(cu_passes_on(file));
}
