#include "util/detour/detour.hpp"

#include <catch2/catch_test_macros.hpp>

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

detour::Answer answer_for(Code code, std::uint64_t address = 0x1000) {
  return detour::find_place(bytes_of(code), address);
}

void check_place(Code code, detour::Place wanted) {
  detour::Answer answer = answer_for(code);
  CHECK(answer.refusal == Refusal::none);
  CHECK(answer.place.kept == wanted.kept);
  CHECK(answer.place.moved == wanted.moved);
  CHECK(answer.place.fix_at == wanted.fix_at);
  CHECK(answer.place.pushed == wanted.pushed);
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

TEST_CASE("A displacement from RIP is noted, but only one can be") {
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
  check_refused({0x48, 0x8d, 0x05, 0x34, 0x12, 0, 0, 0x48, 0x8d, 0x0d, 0x34, 0x12, 0, 0},
                Refusal::two_displacements);
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
  check_refused({0x55, 0xe8, 0, 0x10, 0, 0}, Refusal::branch);     // call
  check_refused({0x55, 0x85, 0xff, 0x74, 0x10}, Refusal::branch);  // je
  check_refused({0x55, 0xe3, 0x10}, Refusal::branch);              // jrcxz
  check_refused({0x55, 0x31, 0xc0, 0xc3}, Refusal::branch);        // its end
  check_refused({0x55, 0x0f, 0x05}, Refusal::trap);                // syscall
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

TEST_CASE("A copy of many bytes would leave no room for the jump back") {
  // mov $0,%eax; mov %rax,(%rdi); nop; movabs $0,%rcx
  Code code = {0xb8, 0, 0, 0, 0, 0x48, 0x89, 0x07, 0x90, 0x48, 0xb9, 0, 0, 0, 0, 0, 0, 0, 0};
  check_refused(code, Refusal::too_long);
}

TEST_CASE("Each refusal is given a reason of its own") {
  std::set<std::string_view> reasons;
  for (auto refusal = Refusal::none; refusal <= Refusal::crosses_line;
       refusal = static_cast<Refusal>(static_cast<int>(refusal) + 1))
    CHECK(reasons.insert(to_string(refusal)).second);
}

TEST_CASE("A loop back to where the jump will be is seen") {
  // push %rbp; mov %rsp,%rbp; dec %edi; nop…; jne to the second instruction
  check_refused({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xf9}, Refusal::jumps_back);
  check_place({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0x75, 0xfe}, {1, 6, 0, 8});  // to itself
  check_place({0x55, 0x48, 0x89, 0xe5, 0xff, 0xcf, 0xeb, 0xf8}, {1, 6, 0, 8});  // to the entry
}

TEST_CASE("The jump is written by one store, within a line") {
  Code code = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x57};
  for (std::uint64_t at = 0; at < 16; at++)
    CHECK(answer_for(code, 0x1000 + at).refusal ==
          (at + 1 + 8 <= 16 ? Refusal::none : Refusal::crosses_line));
}

TEST_CASE("A function whose bytes end too soon is left alone") {
  auto bytes = bytes_of({0x55, 0x48, 0x89, 0xe5, 0x41, 0x57});
  for (std::size_t size = 0; size < 6; size++)
    CHECK(detour::find_place(std::span(bytes).first(size), 0).refusal == Refusal::not_decodable);
  CHECK(detour::find_place(std::span(bytes).first(6), 0).refusal == Refusal::none);
}
