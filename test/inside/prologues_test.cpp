// What find_place() accepts is run, as it is and as ci_patch() and ci_call leave it: registers,
// stack and memory have to be the same behind it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cudabpf/inside.h"
#include "machine.hpp"
#include "patching.h"
#include "references.hpp"
#include "support/recorded_prologues.hpp"
#include "util/detour/detour.hpp"

using namespace cudabpf;
using Catch::Matchers::ContainsSubstring;

namespace {

// How many words above the return address are handed on: as to nearly every function, as to one
// that is not known, an odd number.
constexpr std::array HANDED_ON = {14u, 24u, 9u};

// How much ci_call's frame lowers the stack pointer that the function gets, and where its frame
// pointer is below the one that ci_call got.
constexpr std::uint64_t lowered(unsigned handed_on) {
  return 8 + 240 + (handed_on + 1) / 2 * 16 + 8;
}
constexpr std::uint64_t FRAME_POINTER = 8;

struct Beginning {
  std::string name;
  std::uint64_t at;
  std::vector<std::byte> code;  // what is moved of it
  detour::Place place;
};

abi::ci_site site_of(const Beginning& one, std::size_t number) {
  abi::ci_site site{};
  site.offset = number * Code::APART + one.at;
  site.plan.nargs = 6;
  site.kept = one.place.kept;
  site.moved = one.place.moved;
  site.copied = one.place.copied;
  site.stored = one.place.stored;
  site.pushed = one.place.pushed;
  site.above = CI_USUAL_ABOVE;
  std::memcpy(site.fix_at, one.place.fix_at.data(), sizeof(site.fix_at));
  std::memcpy(site.copy, one.place.copy.data(), sizeof(site.copy));
  std::memcpy(site.code, one.code.data(), one.code.size());
  return site;
}

struct Unpatched {
  std::vector<Word> words;  // that it finds in memory
  Outcome one, other;       // as its caller calls it
  struct Deep {
    Outcome one, other;
  };
  std::array<Deep, HANDED_ON.size()> deep;  // as ci_call does
};

Unpatched run_unpatched(void* function, std::vector<Word> words) {
  std::uint64_t frame = entry_sp() - FRAME_POINTER;
  Unpatched outcome;
  outcome.one = run(function, Noise::one, words);
  outcome.other = run(function, Noise::other, words);
  for (std::size_t i = 0; i < HANDED_ON.size(); i++)
    outcome.deep[i] = {run(function, Noise::one, words, lowered(HANDED_ON[i]), frame),
                       run(function, Noise::other, words, lowered(HANDED_ON[i]), frame)};
  outcome.words = std::move(words);
  return outcome;
}

// What the function can find in memory: if it compares, once what it compares with, once not.
std::vector<std::vector<Word>> possible_words(std::uint64_t entry, const References& references,
                                              const std::byte* way_out) {
  std::vector<Word> words;
  if (references.slot)
    words.push_back({entry + static_cast<std::uint64_t>(*references.slot), sizeof(way_out),
                     reinterpret_cast<std::uint64_t>(way_out)});
  if (!references.compared) return {words};
  const Compared& compared = *references.compared;
  std::vector<Word> equal = words, unequal = words;
  std::uint64_t at = entry + static_cast<std::uint64_t>(compared.at);
  equal.push_back({at, compared.size, compared.equal});
  unequal.push_back({at, compared.size, compared.unequal});
  return {equal, unequal};
}

// Laid out, and run as it is.
std::vector<Unpatched> put_and_run(Code& code, std::size_t number, const Beginning& one) {
  References references = references_of(one.code);
  code.put(number, one.at, one.code, references.targets);
  std::byte* entry = code.at(number * Code::APART + one.at);
  std::vector<Unpatched> runs;
  for (auto& words : possible_words(reinterpret_cast<std::uint64_t>(entry), references,
                                    code.way_out(number, THROUGH_SLOT)))
    runs.push_back(run_unpatched(entry, std::move(words)));
  if (runs.size() == 2 && !references.targets.empty()) {
    INFO(one.name);
    CHECK(runs[0].one.way != runs[1].one.way);
  }
  return runs;
}

// What goes wrong when it is called, as one of those in HANDED_ON or, without that, as one whose
// return is not wanted; empty: nothing.
std::string check_call(void* function, std::optional<std::size_t> which,
                       const Unpatched& as_it_was) {
  bool return_wanted = which.has_value();
  const Outcome& one = which ? as_it_was.deep[*which].one : as_it_was.one;
  const Outcome& other = which ? as_it_was.deep[*which].other : as_it_was.other;
  passing = {};
  passing.return_wanted = return_wanted;
  passing.above = which ? HANDED_ON[*which] : HANDED_ON[0];
  Outcome patched = run(function, Noise::one, as_it_was.words);
  std::string wrong = difference(one, other, patched, passing.above);
  if (!patched.ran) return wrong;
  if (passing.entered != 1 || passing.left != (return_wanted ? 1u : 0u))
    wrong += fmt::format("entered {}, left {}\n", passing.entered, passing.left);
  if (passing.sp != entry_sp()) wrong += "ci_enter() got another stack pointer\n";
  constexpr int ARGUMENTS[] = {RDI, RSI, RDX, RCX, R8, R9};
  for (std::size_t i = 0; i < std::size(ARGUMENTS); i++)
    if (passing.args[i] != cpu_before.general[ARGUMENTS[i]])
      wrong += fmt::format("ci_enter() got another argument {}\n", i);
  if (return_wanted && passing.result != one.after.general[RAX])
    wrong += "ci_leave() got another result\n";
  for (int kept : {RBX, RSP, RBP, R12, R13, R14, R15})
    if (patched.after.general[kept] != cpu_before.general[kept])
      wrong += fmt::format("the caller's register {} has changed\n", kept);
  if (patched.after.general[RAX] != one.after.general[RAX]) wrong += "another result\n";
  return wrong;
}

// Each is patched, and called; what goes wrong.
std::string patch_and_call(std::span<const Beginning> all) {
  std::string wrong;
  Code code(all.size());
  std::vector<abi::ci_site> sites;
  std::vector<std::vector<Unpatched>> unpatched;
  for (std::size_t i = 0; i < all.size(); i++) {
    sites.push_back(site_of(all[i], i));
    unpatched.push_back(put_and_run(code, i, all[i]));
  }
  std::vector<unsigned char> outcomes(all.size());
  patch_code(code.at(0), code.size(), sites.data(), static_cast<unsigned>(sites.size()),
             outcomes.data());
  for (std::size_t i = 0; i < all.size(); i++) {
    std::string said;
    void* function = code.at(sites[i].offset);
    if (outcomes[i] != abi::CI_PATCHED)
      said = fmt::format("not patched: {}", outcomes[i]);
    else
      for (const Unpatched& as_it_was : unpatched[i]) {
        said += check_call(function, std::nullopt, as_it_was);
        for (std::size_t which = 0; which < HANDED_ON.size(); which++)
          said += check_call(function, which, as_it_was);
      }
    if (!said.empty()) wrong += fmt::format("{}:\n{}\n", all[i].name, said);
  }
  return wrong;
}

// So few at once that what they refer to lies beyond them.
void check_all(std::span<const Beginning> all) {
  constexpr std::size_t AT_ONCE = 20;
  for (; !all.empty(); all = all.subspan(std::min(AT_ONCE, all.size())))
    CHECK(patch_and_call(all.first(std::min(AT_ONCE, all.size()))) == "");
}

// As find_place() wants it.
Beginning beginning_of(std::string name, std::uint64_t at, std::vector<std::byte> code) {
  code.resize(detour::CODE, std::byte{0x90});
  auto [place, refusal] = detour::find_place(code, at);
  INFO(name);
  REQUIRE(refusal == detour::Refusal::none);
  code.resize(place.moved);
  return {std::move(name), at, std::move(code), place};
}

}  // namespace

TEST_CASE("What is accepted of real drivers' functions does the same when it is patched") {
  std::map<std::pair<std::uint64_t, std::vector<std::byte>>, Beginning> distinct;
  for (const RecordedDriver& driver : recorded_drivers())
    for (const Prologue& one : driver.functions) {
      auto [place, refusal] = detour::find_place(one.code, one.at);
      if (refusal != detour::Refusal::none) continue;
      std::vector<std::byte> code(one.code.begin(), one.code.begin() + place.moved);
      distinct.try_emplace({one.at, code},
                           Beginning{driver.version + " " + one.name, one.at, code, place});
    }
  std::vector<Beginning> all;
  for (const auto& [key, one] : distinct) all.push_back(one);
  REQUIRE(!all.empty());
  check_all(all);
}

TEST_CASE("Beginnings of every kind do the same when they are patched") {
  const std::pair<const char*, const char*> KINDS[] = {
      {"push %rbp; mov %rsp,%rbp; push %r15", "554889e54157"},
      {"push %r15; mov %rsi,%r15; push %r14", "41574989f74156"},
      {"push %rbx; mov %rdi,%rbx; sub $0x10,%rsp", "534889fb4883ec10"},
      {"push %rbp; sub $0x88,%rsp", "554881ec88000000"},
      {"push %rax, for the stack's alignment; mov %rdi,(%rsp)", "504883ec0848893c24"},
      {"push %rbp; and $-64,%rsp", "554883e4c090"},
      {"sub $0x18,%rsp; mov %rsp,%rdx; mov %rdi,(%rsp)", "4883ec184889e248893c24"},
      {"sub $0x1000,%rsp; mov %rdi,%rax; xor %edx,%edx", "4881ec001000004889f831d2"},
      {"endbr64; push %rbp; mov %rsp,%rbp; push %r15", "f30f1efa554889e54157"},
      {"nop; push %rbp; mov %rsp,%rbp", "0f1f440000554889e590"},
      {"xor %eax,%eax; mov %rax,(%rdi); mov %rax,(%rsi)", "31c0488907488906"},
      {"mov $100,%eax; mov %rax,(%rdi); mov %rax,(%rsi)", "b864000000488907488906"},
      {"lea 0x8(%rdi),%rax; mov %rsi,(%rax); mov (%rax),%rcx", "488d4708488930488b08"},
      {"mov %rdi,%rax; mov %rax,(%rsi); mov %rax,-8(%rsp)", "4889f848890648894424f8"},
      {"lea 0x1234(%rip),%rax; mov %rax,(%rdi); mov %rax,(%rsi)", "488d0534120000488907488906"},
      {"lea -0x6227(%rip),%rax; mov %rax,0x17788(%rdi)", "488d05d99dffff48898788770100"},
      {"push %rbp; mov 0x14da66e(%rip),%rax; mov %rsp,%rbp", "55488b056ea64d014889e5"},
      {"push %rbp; mov %rdi,0x1234(%rip)", "5548893d34120000"},
      {"push %rbx; cmpl $0x321cba00,0x14da66e(%rip)", "53813d6ea64d0100ba1c32"},
      {"push %rbx; movups 0x1234(%rip),%xmm1; movaps %xmm0,%xmm2", "530f100d341200000f28d0"},
      {"push %rbx; incl (%rdi); adc $0,%esi", "53ff0783d600"},
      {"cmpl; je to 24; jmp *slot", "813dae584b0100ba1c32740cff25be103b01"},
      {"cmpl; je to 24; movzwl %dx,%edx", "813dae584b0100ba1c32740c0fb7d2"},
      {"cmpl; je to 24; movzbl %sil,%esi", "813dae584b0100ba1c32740c400fb6f6"},
      {"cmpl; jne to 32; jmp *slot", "813dae584b0100ba1c327514ff25be103b01"},
      {"testb $4,word; je to 24; jmp *slot", "f6053456010004740fff25be103b01"},
      {"test %rdi,%rdi; je, not taken; mov %rdi,%rax", "4885ff74104889f8"},
      {"test %rdi,%rdi; jne, taken; mov %rdi,%rax", "4885ff75104889f8"},
      {"cmp %rsi,%rdi; jb rel32, taken; nop", "4839f70f821000000090"},
      {"push %rbp; test %edx,%edx; js rel32, not taken", "5585d20f8810000000"},
      {"push %rbp; cmp %rsi,%rdi; ja; jb; nop", "554839f777187220"},
      {"test %rdi,%rdi; je; jne; jmp", "4885ff74107514eb17"},
      {"push %rbp; jmp rel32", "55e910000000"},
      {"push %rbp; mov %rdi,%rbp; nop; jmp rel8", "554889fd90eb10"},
      {"push %rbp; pop %rbp; jmp *slot", "555dff2534120000"},
      {"push %rbp; xor %eax,%eax; pop %rbp; nop; ret", "5531c05d90c3"},
      {"sub $8,%rsp; lea 8(%rdi),%rax; add $8,%rsp; ret", "4883ec08488d47084883c408c3"},
  };
  std::vector<Beginning> all;
  for (const auto& [name, code] : KINDS)
    for (std::uint64_t at : {0, 1})
      all.push_back(beginning_of(fmt::format("{} at {}", name, at), at, bytes_of_hex(code)));
  check_all(all);
}

TEST_CASE("A branch to before the function does the same when it is patched") {
  const std::pair<const char*, const char*> KINDS[] = {
      {"push %rbp; test %rdi,%rdi; jne rel8", "554885ff75e0"},
      {"test %rdi,%rdi; jne rel32", "4885ff0f85e0ffffff"},
      {"push %rbp; jmp rel32", "55e9e0ffffff"},
  };
  std::vector<Beginning> all;
  for (const auto& [name, code] : KINDS)
    for (std::uint64_t at : {32, 33, 39})
      all.push_back(beginning_of(fmt::format("{} at {}", name, at), at, bytes_of_hex(code)));
  check_all(all);
}

TEST_CASE("A place that is wrong is noticed") {
  Beginning elsewhere = beginning_of("lea 0x1234(%rip),%rax; mov %rax,(%rdi)", 0,
                                     bytes_of_hex("488d0534120000488907488906"));
  elsewhere.place.fix_at = {};
  Beginning twice{"incl (%rdi); mov %rdi,%rbx; mov %rsi,%r12",
                  0,
                  bytes_of_hex("ff074889fb4989f4"),
                  {.kept = 2, .moved = 8, .copied = 8, .stored = 2}};
  std::copy(twice.code.begin(), twice.code.end(), twice.place.copy.begin());
  Beginning astray =
      beginning_of("test %rdi,%rdi; jne; mov %rdi,%rax", 0, bytes_of_hex("4885ff75104889f8"));
  constexpr auto JE = std::byte{0x84};
  astray.place.copy[4] = JE;
  CHECK_THAT(patch_and_call({&elsewhere, 1}), ContainsSubstring("register 0"));
  CHECK_THAT(patch_and_call({&twice, 1}), ContainsSubstring("memory at"));
  CHECK_THAT(patch_and_call({&astray, 1}), ContainsSubstring("the way out"));
}

namespace {

// What becomes of a site that would be patched without this change.
unsigned char outcome_of(const std::function<void(abi::ci_site&)>& change) {
  // cmpl $0x321cba00,…(%rip); je to 24; jmp *slot
  Beginning sound =
      beginning_of("cmpl; je; jmp", 0, bytes_of_hex("813dae584b0100ba1c32740cff25be103b01"));
  abi::ci_site changed = site_of(sound, 0);
  change(changed);
  Code code(1);
  code.put(0, 0, sound.code, {});
  std::vector<std::byte> before(code.at(0), code.at(detour::CODE));
  unsigned char outcome = abi::CI_REFUSED;
  patch_code(code.at(0), code.size(), &changed, 1, &outcome);
  bool untouched = std::equal(before.begin(), before.end(), code.at(0));
  CHECK(untouched == (outcome != abi::CI_PATCHED));
  return outcome;
}

}  // namespace

TEST_CASE("A site that makes no sense is left alone") {
  CHECK(outcome_of([](abi::ci_site&) {}) == abi::CI_PATCHED);
  const std::vector<void (*)(abi::ci_site&)> CHANGES = {
      [](abi::ci_site& one) { one.kept = 0; },
      [](abi::ci_site& one) { one.kept = 14; },  // the jump would not be moved
      [](abi::ci_site& one) { one.moved = 14; },
      [](abi::ci_site& one) { one.moved = CI_MAX_CODE + 1; },
      [](abi::ci_site& one) { one.copied = 9; },
      [](abi::ci_site& one) { one.copied = CI_MAX_CODE + 1; },
      [](abi::ci_site& one) { one.stored = 0; },   // a uprobe's byte
      [](abi::ci_site& one) { one.stored = 6; },   // the jump's end would not be written
      [](abi::ci_site& one) { one.stored = 9; },   // across a line
      [](abi::ci_site& one) { one.stored = 16; },  // behind the jump's beginning
      [](abi::ci_site& one) { one.fix_at[2] = 19; },
      [](abi::ci_site& one) { one.fix_at[1] = 4; },
      [](abi::ci_site& one) { one.fix_at[1] = 0; },
      [](abi::ci_site& one) { one.pushed = -8; },
      [](abi::ci_site& one) { one.above = CI_USUAL_ABOVE - 1; },
      [](abi::ci_site& one) { one.above = CI_MAX_ABOVE + 1; },
      [](abi::ci_site& one) { one.plan.nargs = CB_MAX_ARGS + 1; },
      [](abi::ci_site& one) { one.code[5] ^= 1; },
      [](abi::ci_site& one) { one.offset = 1 << 20; },
  };
  for (std::size_t i = 0; i < CHANGES.size(); i++) {
    INFO("change " << i);
    CHECK(outcome_of(CHANGES[i]) == abi::CI_DIFFERS);
  }
}

TEST_CASE("Rows that would write beyond their record, or look outside of it, are left alone") {
  using Row = std::pair<std::size_t, abi::cb_read>;
  auto with = [](const Row& row) {
    return outcome_of([&](abi::ci_site& one) { one.reads[row.first] = row.second; });
  };
  CHECK(with({0, {abi::CB_READ_INTS, 0, 6, 1, 0, CB_MAX_LISTED * 4}}) == abi::CI_PATCHED);
  CHECK(with({0, {abi::CB_READ_LIST, 0, 0, 1, 0, CB_MAX_LISTED * 8}}) == abi::CI_PATCHED);
  const std::vector<Row> ROWS = {
      {7, {abi::CB_READ_STRUCT, 0, 6, 0, 0, 240}},
      {0, {abi::CB_READ_STRUCT, 0, 12, 0, 0, 72}},
      {0, {abi::CB_READ_STRUCT, 0, 33, 0, 0, 64}},
      {0, {abi::CB_READ_STRUCT, 0, 5, 0, 0, 8}},  // before its structs
      {0, {abi::CB_READ_STRUCT, CB_ENTRY_WORDS, 6, 0, 0, 8}},
      {0, {abi::CB_READ_ARRAY, 0, 6, CB_ENTRY_WORDS, 0, 8}},
      {0, {abi::CB_READ_INTS, 0, 6, CB_ENTRY_WORDS, 0, 8}},
      {0, {abi::CB_READ_STRING, 0, 12, 0, 0, 0}},
      {0, {abi::CB_READ_RETURN, 0, 4, 0, 0, 8}},
      {0, {abi::CB_READ_RETURN, 0, 0, 0, 0, 16}},
      {0, {abi::CB_READ_RETURN, 68, 0, 0, 0, 8}},
      {0, {abi::CB_READ_LIST, 0, 0, 1, 0, CB_MAX_LISTED * 8 + 8}},
      {0, {abi::CB_READ_LIST, 0, 1, 1, 0, 8}},
      {1, {abi::CB_READ_LIST, 0, 0, 1, 0, 8}},  // another comes before it
      {0, {abi::CB_READ_LIST, CB_MAX_ARGS, 0, 1, 0, 8}},
      {0, {abi::CB_READ_LIST, 0, 0, CB_MAX_ARGS, 0, 8}},
  };
  for (std::size_t i = 0; i < ROWS.size(); i++) {
    INFO("row " << i);
    CHECK(with(ROWS[i]) == abi::CI_DIFFERS);
  }
}
