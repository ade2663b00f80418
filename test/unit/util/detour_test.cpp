#include "util/detour/detour.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <set>
#include <string_view>
#include <vector>

using namespace cudabpf;
using detour::Refusal;

namespace cudabpf::detour {
std::ostream& operator<<(std::ostream& out, Refusal refusal) { return out << to_string(refusal); }
}  // namespace cudabpf::detour

namespace {

using Code = std::initializer_list<unsigned>;

constexpr unsigned NOP = 0x90;

// The code, and as much behind it as is looked at.
std::vector<std::byte> bytes_of(Code code) {
  std::vector<std::byte> bytes;
  for (unsigned byte : code) bytes.push_back(static_cast<std::byte>(byte));
  bytes.resize(detour::CODE, static_cast<std::byte>(NOP));
  return bytes;
}

std::vector<std::byte> copy_of(const detour::Place& place) {
  return {place.copy.begin(), place.copy.begin() + place.copied};
}

detour::Answer answer_for(Code code, std::uint64_t address = 0x1000) {
  return detour::find_place(bytes_of(code), address);
}

struct Wanted {
  int kept, moved, fix_at, pushed;
};

// The copy is of the same bytes.
void check_place(Code code, Wanted wanted) {
  detour::Answer answer = answer_for(code);
  CHECK(answer.refusal == Refusal::none);
  CHECK(answer.place.kept == wanted.kept);
  CHECK(answer.place.moved == wanted.moved);
  CHECK(answer.place.fix_at[0] == wanted.fix_at);
  CHECK(answer.place.fix_at[1] == 0);
  CHECK(answer.place.pushed == wanted.pushed);
  std::vector<std::byte> moved = bytes_of(code);
  moved.resize(answer.place.moved);
  CHECK(copy_of(answer.place) == moved);
}

struct WantedCopy {
  int kept, moved;
  Code copy;
  std::vector<std::uint8_t> fix_at;
};

void check_copy(Code code, const WantedCopy& wanted) {
  auto [place, refusal] = answer_for(code);
  CHECK(refusal == Refusal::none);
  CHECK(place.kept == wanted.kept);
  CHECK(place.moved == wanted.moved);
  std::vector<std::byte> copy = bytes_of(wanted.copy);
  copy.resize(wanted.copy.size());
  CHECK(copy_of(place) == copy);
  std::vector<std::uint8_t> fix_at = wanted.fix_at;
  fix_at.resize(detour::FIXED);
  CHECK(std::vector(place.fix_at.begin(), place.fix_at.end()) == fix_at);
}

void check_refused(Code code, Refusal why, std::uint64_t address = 0x1000) {
  CHECK(answer_for(code, address).refusal == why);
}

}  // namespace

TEST_CASE("The jump comes behind the first instruction, and whole instructions are moved") {
  // push %rbp; mov %rsp,%rbp; push %r15; push %r14
  check_place({0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56}, {1, 6, 0, 8});
  // push %r15; mov %rsi,%r15; push %r14
  check_place({0x41, 0x57, 0x49, 0x89, 0xf7, 0x41, 0x56}, {2, 7, 0, 8});
  // push %rbp; sub $0x88,%rsp
  check_place({0x55, 0x48, 0x81, 0xec, 0x88, 0, 0, 0}, {1, 8, 0, 8});
  // push %rax; movabs $1,%rax: longer than the jump
  check_place({0x50, 0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0}, {1, 11, 0, 8});
  // endbr64; push %rbp; mov %rsp,%rbp; nop
  check_place({0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90}, {4, 9, 0, 0});
  // sub $0x18,%rsp; mov %rdi,%rax; xor %edx,%edx
  check_place({0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xf8, 0x31, 0xd2}, {4, 9, 0, 0x18});
}

TEST_CASE("A first instruction that computes something for a scratch register can run twice") {
  check_place({0x31, 0xc0, 0x48, 0x89, 0x07, 0x48, 0x89, 0x06}, {2, 8, 0, 0});   // xor %eax,%eax
  check_place({0xb8, 1, 0, 0, 0, 0x48, 0x89, 0x07, 0x90, 0x90}, {5, 10, 0, 0});  // mov $1,%eax
  check_place({0x49, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x90}, {3, 8, 0, 0});   // mov %rsp,%r10
}

TEST_CASE("A displacement from RIP is noted") {
  // push %rbp; lea 0x1234(%rip),%rax
  check_place({0x55, 0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0}, {1, 8, 4, 8});
  // push %rbp; cmpl $0,0x1234(%rip): an immediate follows the displacement
  check_place({0x55, 0x83, 0x3d, 0x34, 0x12, 0, 0, 0}, {1, 8, 3, 8});
  // push %rax; mov 0x1234(%rip),%ecx
  check_place({0x50, 0x8b, 0x0d, 0x34, 0x12, 0, 0}, {1, 7, 3, 8});
  // lea 0x1234(%rip),%rax; mov %rax,(%rdi); mov %rax,(%rsi): in the first instruction itself
  check_place({0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x89, 0x07, 0x48, 0x89, 0x06},
              {7, 13, 3, 0});
  // push %rbp; mov %rsp,%rbp; push %r15; mov 0x1234(%rip),%rax: behind what is moved
  check_place({0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x48, 0x8b, 0x05, 0x34, 0x12, 0, 0},
              {1, 6, 0, 8});
  // lea 0x1234(%rip),%rax; lea 0x1234(%rip),%rcx
  check_copy(
      {0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x8d, 0x0d, 0x34, 0x12, 0, 0},
      {7, 14, {0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x8d, 0x0d, 0x34, 0x12, 0, 0}, {3, 10}});
}

TEST_CASE("A first instruction that only compares can run twice") {
  // test %rdi,%rdi; cmp %edi,%esi; cmp $7,%dil
  check_place({0x48, 0x85, 0xff, 0x90, 0x90, 0x90, 0x90, 0x90}, {3, 8, 0, 0});
  check_place({0x39, 0xfe, 0x90, 0x90, 0x90, 0x90, 0x90}, {2, 7, 0, 0});
  check_place({0x40, 0x80, 0xff, 7, 0x90, 0x90, 0x90, 0x90, 0x90}, {4, 9, 0, 0});
  // testb $1,0x1234(%rip); cmp 0x1234(%rip),%rdi
  check_place({0xf6, 0x05, 0x34, 0x12, 0, 0, 1, 0x90, 0x90, 0x90, 0x90, 0x90}, {7, 12, 2, 0});
  check_place({0x48, 0x3b, 0x3d, 0x34, 0x12, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90}, {7, 12, 3, 0});
  // cmpl $0,(%rdi); cmp %fs:0x1234(%rip),%edi; cmpsb: memory that is another's
  check_refused({0x83, 0x3f, 0, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x64, 0x3b, 0x3d, 0x34, 0x12, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90},
                Refusal::first_not_repeatable);
  check_refused({0xa6, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
}

TEST_CASE("How nearly all functions of drivers 470 to 555 begin") {
  // cmpl $0x321cba00,0x4b58ae(%rip); je to 32; jmp *0x13b10be(%rip)
  check_copy({0x81, 0x3d, 0xae, 0x58, 0x4b, 0, 0, 0xba, 0x1c, 0x32, 0x74, 0x14, 0xff, 0x25, 0xbe,
              0x10, 0x3b, 1},
             {10,
              18,
              {0x81, 0x3d, 0xae, 0x58, 0x4b, 0,    0,    0xba, 0x1c, 0x32, 0x0f,
               0x84, 0x10, 0,    0,    0,    0xff, 0x25, 0xba, 0x10, 0x3b, 1},
              {2, 12, 18}});
  // cmpl $0x321cba00,0x4b58ae(%rip); je to 24; movzwl %dx,%edx; and the jump behind what is moved
  check_copy({0x81, 0x3d, 0xae, 0x58, 0x4b, 0,    0,    0xba, 0x1c, 0x32, 0x74,
              0x0c, 0x0f, 0xb7, 0xd2, 0xff, 0x25, 0xbe, 0x10, 0x3b, 1},
             {10,
              15,
              {0x81, 0x3d, 0xae, 0x58, 0x4b, 0, 0, 0xba, 0x1c, 0x32, 0x0f, 0x84, 0x08, 0, 0, 0,
               0x0f, 0xb7, 0xd2},
              {2, 12}});
}

TEST_CASE("Branches go where they went") {
  // push %rbp; test %edi,%edi; je 0x10 on; nop
  check_copy({0x55, 0x85, 0xff, 0x74, 0x10, 0x90},
             {1, 6, {0x55, 0x85, 0xff, 0x0f, 0x84, 0x0c, 0, 0, 0, 0x90}, {5}});
  // push %rbp; test %edi,%edi; jg to before the function; nop
  check_copy({0x55, 0x85, 0xff, 0x7f, 0x80, 0x90},
             {1, 6, {0x55, 0x85, 0xff, 0x0f, 0x8f, 0x7c, 0xff, 0xff, 0xff, 0x90}, {5}});
  // push %rbp; js 0x1234 on: as long as before
  check_copy({0x55, 0x0f, 0x88, 0x34, 0x12, 0, 0},
             {1, 7, {0x55, 0x0f, 0x88, 0x34, 0x12, 0, 0}, {3}});
  // test %edi,%edi; je; jns; jmp: three of them
  check_copy(
      {0x85, 0xff, 0x74, 0x10, 0x79, 0x10, 0xeb, 0x10},
      {2,
       8,
       {0x85, 0xff, 0x0f, 0x84, 0x0c, 0, 0, 0, 0x0f, 0x89, 0x08, 0, 0, 0, 0xe9, 0x05, 0, 0, 0},
       {4, 10, 15}});
  // push %rbp; jmp 0x1234 on
  check_copy({0x55, 0xe9, 0x34, 0x12, 0, 0}, {1, 6, {0x55, 0xe9, 0x34, 0x12, 0, 0}, {2}});
  // cmpl $0,0x1234(%rip); je; je; je: one more than can be corrected
  check_refused({0x83, 0x3d, 0x34, 0x12, 0, 0, 0, 0x74, 0x10, 0x74, 0x10, 0x74, 0x10},
                Refusal::many_displacements);
  // test %edi,%edi; je; lea -0x80000000(%rip),%rcx: out of reach from four bytes further on
  check_refused({0x85, 0xff, 0x74, 0x10, 0x48, 0x8d, 0x0d, 0, 0, 0, 0x80}, Refusal::too_far);
}

TEST_CASE("A jump or a return may be the last of what is moved, at its end") {
  // push %rbp; mov %rsp,%rbp; pop %rbp; ret
  check_place({0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3}, {1, 6, 0, 8});
  check_place({0x55, 0x48, 0x89, 0xe5, 0x5d, 0xf3, 0xc3}, {1, 7, 0, 8});  // rep ret
  check_place({0x55, 0x31, 0xc9, 0x5d, 0xc2, 0x08, 0}, {1, 7, 0, 8});     // ret $8
  check_place({0x55, 0x31, 0xc9, 0x5d, 0xff, 0xe1}, {1, 6, 0, 8});        // jmp *%rcx
  check_place({0x55, 0x5d, 0xff, 0x25, 0x34, 0x12, 0, 0}, {1, 8, 4, 8});  // jmp *0x1234(%rip)
  check_refused({0x55, 0x48, 0x89, 0xe5, 0xc3, 0x90}, Refusal::branch);   // a byte too early
  check_refused({0x55, 0x5d, 0xeb, 0x10, 0x90, 0x90}, Refusal::branch);   // jmp
  check_refused({0xb8, 0x21, 3, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90}, Refusal::branch);
  check_refused({0x55, 0x31, 0xc9, 0x5d, 0x66, 0xc3}, Refusal::branch);  // to 16 bits, or not
  check_refused({0x55, 0x31, 0xc9, 0x5d, 0xcb, 0x90}, Refusal::branch);  // far
  check_refused({0x55, 0x31, 0xc9, 0x5d, 0xff, 0x2f}, Refusal::branch);  // far
  check_refused({0x55, 0x31, 0xc9, 0x90, 0x66, 0x74, 0x10}, Refusal::branch);
}

TEST_CASE("What a caller left in a register of no argument is not there for the copy") {
  check_refused({0x55, 0x84, 0xc0, 0x74, 0x10, 0x90}, Refusal::reads_scratch);  // test %al,%al
  check_refused({0x84, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::reads_scratch);
  check_refused({0x55, 0x0f, 0xb6, 0xc0, 0x90, 0x90}, Refusal::reads_scratch);  // movzbl %al,%eax
  check_refused({0x55, 0x49, 0x8b, 0x02, 0x90, 0x90}, Refusal::reads_scratch);  // mov (%r10),%rax
  check_refused({0x55, 0x5d, 0x41, 0xff, 0xe3, 0x90}, Refusal::reads_scratch);  // jmp *%r11
  check_refused({0x55, 0x48, 0x98, 0x90, 0x90, 0x90}, Refusal::reads_scratch);  // cltq
  check_refused({0x55, 0xb0, 1, 0x01, 0xc7, 0x90},
                Refusal::reads_scratch);  // mov $1,%al; add %eax,
  // mov $1,%eax; add %eax,%edi. push %rbp; push %rax; nopl 0(%rax,%rax)
  check_place({0xb8, 1, 0, 0, 0, 0x01, 0xc7, 0x90, 0x90, 0x90}, {5, 10, 0, 0});
  check_place({0x55, 0x50, 0x0f, 0x1f, 0x44, 0, 0}, {1, 7, 0, 8});
  // lea 8(%rsp),%r10; and $-32,%rsp; push -8(%r10)
  check_place({0x4c, 0x8d, 0x54, 0x24, 8, 0x48, 0x83, 0xe4, 0xe0, 0x41, 0xff, 0x72, 0xf8},
              {5, 13, 0, 0});
}

TEST_CASE("What cannot run twice, or elsewhere, is left alone") {
  check_refused({0x48, 0x89, 0xfe, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0xff, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0x8b, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0xff, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0x83, 0xc4, 0x18, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0x83, 0xec, 0x80, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0xe9, 0, 0x10, 0, 0}, Refusal::branch);
  check_refused({0xff, 0x25, 0, 0x10, 0, 0}, Refusal::branch);
  check_refused({0xc3}, Refusal::branch);
  check_refused({0x74, 0x10, 0x90, 0x90, 0x90, 0x90, 0x90}, Refusal::branch);
  check_refused({0x55, 0xe8, 0, 0x10, 0, 0}, Refusal::branch);                 // call
  check_refused({0x55, 0xff, 0x15, 0, 0x10, 0, 0}, Refusal::branch);           // call *0x1000(%rip)
  check_refused({0x55, 0xe3, 0x10}, Refusal::branch);                          // jrcxz
  check_refused({0x55, 0xe2, 0x10}, Refusal::branch);                          // loop
  check_refused({0x55, 0xc5, 0x48, 0x84, 0xc0, 0, 0, 0, 0}, Refusal::branch);  // jkzd, of Xeon Phi
  check_refused({0x55, 0x31, 0xc0, 0xc3}, Refusal::branch);                    // its end
  check_refused({0x55, 0x0f, 0x05}, Refusal::trap);                            // syscall
  check_refused({0x55, 0xcc}, Refusal::trap);
  check_refused({0xcc, 0x48, 0x89, 0xe5}, Refusal::trap);
  check_refused({0x55, 0x0f, 0x0b}, Refusal::trap);  // ud2
  check_refused({0x06}, Refusal::not_decodable);
}

TEST_CASE("The stack pointer is put back only from where a function can have brought it") {
  check_place({0x48, 0x81, 0xec, 0, 0, 0x10, 0, 0x90}, {7, 12, 0, 1 << 20});
  check_refused({0x48, 0x81, 0xec, 1, 0, 0x10, 0, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0x81, 0xec, 0, 0, 0, 0x80, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x48, 0x83, 0xec, 0, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);
  check_refused({0x83, 0xec, 0x18, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);  // esp
  check_refused({0x48, 0x29, 0xc4, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);  // by rax
  check_refused({0x66, 0x55, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);  // push %bp
  check_refused({0x6a, 0x01, 0x90, 0x90, 0x90, 0x90}, Refusal::first_not_repeatable);  // push $1
}

TEST_CASE("A copy has a limited size") {
  // A nop of 15 bytes; je, four bytes longer in the copy; nop; movabs $0,%rcx: 32 bytes
  Code fits = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0,
               0,    0x74, 0x40, 0x90, 0x48, 0xb9, 0,    0,    0,    0,    0, 0, 0, 0};
  CHECK(answer_for(fits, 0x1001).refusal == Refusal::none);
  CHECK(answer_for(fits, 0x1001).place.copied == 32);
  // With a nop of two bytes
  Code longer = {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0,
                 0x74, 0x40, 0x66, 0x90, 0x48, 0xb9, 0,    0,    0,    0,    0, 0, 0, 0};
  check_refused(longer, Refusal::too_long, 0x1001);
}

TEST_CASE("Each refusal is given a reason of its own") {
  std::set<std::string_view> reasons;
  for (auto refusal = Refusal::none; refusal <= Refusal::crosses_line;
       refusal = static_cast<Refusal>(static_cast<int>(refusal) + 1))
    CHECK(reasons.insert(to_string(refusal)).second);
}

TEST_CASE("A branch to where the jump will be is seen") {
  // push %rbp; mov %rsp,%rbp; dec %edi; jne to the second instruction
  check_refused({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xf9}, Refusal::jumps_into);
  // push %rbp; test %edi,%edi; je to the nop behind it, to itself, to the entry
  check_refused({0x55, 0x85, 0xff, 0x74, 0, 0x90, 0x90, 0x90}, Refusal::jumps_into);
  check_refused({0x55, 0x85, 0xff, 0x74, 0xfe, 0x90, 0x90, 0x90}, Refusal::jumps_into);
  check_refused({0x55, 0x85, 0xff, 0x74, 0xfb, 0x90, 0x90, 0x90}, Refusal::jumps_into);
  check_place({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xfe}, {1, 6, 0, 8});  // to itself
  check_place({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0xeb, 0xf8}, {1, 6, 0, 8});  // to the entry
}

// Where the store begins for a first instruction of this many bytes; 0: nowhere.
int stored_for(std::uint64_t at, int kept) {
  std::vector<std::byte> code(detour::CODE, std::byte{NOP});
  constexpr auto PREFIX = std::byte{0x66};
  std::fill_n(code.begin(), kept - 1, PREFIX);
  auto [place, refusal] = detour::find_place(code, at);
  CHECK(refusal == (place.stored ? Refusal::none : Refusal::crosses_line));
  return place.stored;
}

TEST_CASE("The jump is written by one store, within a line, which leaves the first byte alone") {
  for (std::uint64_t at = 0; at < 32; at++) {
    CHECK(stored_for(at, 1) == ((at + 1) % 16 <= 8 ? 1 : 0));
    CHECK(stored_for(at, 2) == ((at + 2) % 16 <= 8 ? 2 : (at + 1) % 16 == 8 ? 1 : 0));
    // It may begin three bytes before the jump, which then ends with it.
    int end = static_cast<int>((at + 10) % 16);
    CHECK(stored_for(at, 10) == (end <= 8 ? 10 : end <= 11 ? 10 - (end - 8) : 0));
  }
  CHECK(stored_for(0, 10) == 8);
}

TEST_CASE("A function whose bytes end too soon is left alone") {
  auto bytes = bytes_of({0x55, 0x48, 0x89, 0xe5, 0x41, 0x57});
  for (std::size_t size = 0; size < 6; size++)
    CHECK(detour::find_place(std::span(bytes).first(size), 0).refusal == Refusal::not_decodable);
  CHECK(detour::find_place(std::span(bytes).first(6), 0).refusal == Refusal::none);
}
