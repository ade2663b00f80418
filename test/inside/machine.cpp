#include "machine.hpp"

#include <fmt/format.h>
#include <setjmp.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "patching.h"

void* cpu_function;
cpu_state cpu_before, cpu_reached, cpu_spoilt, cpu_after;

namespace {

constexpr std::uint64_t PAGE = 4096;
constexpr std::uint64_t CODE_AT = 0x300000000000;
// Around the code, so that what it refers to by its own address is not where stubs are put.
constexpr std::uint64_t NEAR = 256 << 20;
// The way that was taken is written there: within reach of the code, which is not always writable.
std::uint32_t* const WAY_TAKEN = reinterpret_cast<std::uint32_t*>(CODE_AT - NEAR);
constexpr std::size_t BEGINNING = 64;  // of what belongs to a function: its beginning is there,
constexpr std::size_t WAY_OUT = 16;    // then the ways out of it,
constexpr std::size_t BEHIND_AT = BEGINNING + WAYS * WAY_OUT;  // and the address of cpu_behind()
static_assert(BEHIND_AT + 8 <= Code::APART);
constexpr std::uint64_t ARGUMENTS_AT = 0x200000000000, ARGUMENTS_APART = 1 << 20;

constexpr std::size_t STACK = 64 << 10, ABOVE = 1024;
constexpr std::size_t LOOKED_BELOW = 4096, MAX_HANDED_ON = 24 * 8;
alignas(64) std::uint8_t stack[STACK];
std::array<std::uint8_t, LOOKED_BELOW + 8 + MAX_HANDED_ON> stack_seen;

// ----- memory that comes into being where it is touched

constexpr std::size_t MAX_PAGES = 64;
std::array<std::uint64_t, MAX_PAGES> touched;
std::size_t touched_count;
std::span<const Word> words_there;
sigjmp_buf given_up;

void* map(std::uint64_t at, std::size_t size, int protection) {
  return mmap(reinterpret_cast<void*>(at), size, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void put_words(std::uint64_t page) {
  for (const Word& word : words_there)
    for (std::size_t i = 0; i < word.size; i++)
      if (word.address + i - page < PAGE)
        *reinterpret_cast<std::uint8_t*>(word.address + i) =
            static_cast<std::uint8_t>(word.value >> 8 * i);
}

// Each word's value is an address, and no two are the same, except those that are given.
void on_fault(int, siginfo_t* info, void*) {
  std::uint64_t page = reinterpret_cast<std::uint64_t>(info->si_addr) & ~(PAGE - 1);
  bool ours = page - (CODE_AT - NEAR) < 2 * NEAR || page - ARGUMENTS_AT < CODE_AT - ARGUMENTS_AT;
  if (!ours || touched_count == MAX_PAGES || map(page, PAGE, PROT_READ | PROT_WRITE) == MAP_FAILED)
    siglongjmp(given_up, 1);
  for (std::uint64_t at = page; at < page + PAGE; at += 8)
    *reinterpret_cast<std::uint64_t*>(at) = at + 8;
  put_words(page);
  touched[touched_count++] = page;
}

// While it lives.
class Faults {
 public:
  Faults() {
    stack_t own{};
    own.ss_sp = memory_.data();
    own.ss_size = memory_.size();
    sigaltstack(&own, &stack_before_);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_);
    touched_count = 0;
  }
  ~Faults() {
    sigaction(SIGSEGV, &before_, nullptr);
    sigaltstack(&stack_before_, nullptr);
  }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // They are gone afterwards.
  std::map<std::uint64_t, std::vector<std::uint8_t>> take_pages() {
    std::map<std::uint64_t, std::vector<std::uint8_t>> pages;
    for (std::uint64_t page : std::span(touched).first(touched_count)) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(page);
      pages[page].assign(bytes, bytes + PAGE);
      map(page, PAGE, PROT_NONE);
    }
    return pages;
  }

 private:
  std::array<std::uint8_t, 64 << 10> memory_;
  stack_t stack_before_{};
  struct sigaction before_ {};
};

// ----- registers

constexpr int ARGUMENTS[] = {RDI, RSI, RDX, RCX, R8, R9}, KEPT[] = {RBX, RBP, R12, R13, R14, R15};
constexpr std::uint64_t ARITHMETIC_FLAGS = 0x8d5, ALWAYS_SET = 2;
constexpr std::size_t VECTOR_ARGUMENTS = 8;

void fill_registers(Noise noise) {
  auto something = static_cast<std::uint64_t>(noise);
  std::fill_n(cpu_before.general, GENERAL, something);
  for (std::uint64_t i = 0; i < std::size(ARGUMENTS); i++)
    cpu_before.general[ARGUMENTS[i]] = ARGUMENTS_AT + i * ARGUMENTS_APART + ARGUMENTS_APART / 2;
  for (std::uint64_t i = 0; i < std::size(KEPT); i++)
    cpu_before.general[KEPT[i]] = 0x1234567800000000 + i;
  for (std::size_t i = 0; i < std::size(cpu_before.vectors); i++)
    for (std::size_t half : {0u, 1u})
      cpu_before.vectors[i][half] =
          i < VECTOR_ARGUMENTS ? 0x4000000000000000 + 2 * i + half : something;
  cpu_before.flags = (something & ARITHMETIC_FLAGS) | ALWAYS_SET;
  std::fill_n(cpu_spoilt.general, GENERAL, 0xdeadbeef);
  cpu_spoilt.general[RAX] = 0x87654321;
}

void fill_stack(std::uint64_t sp, Noise noise) {
  auto* entry = reinterpret_cast<std::uint8_t*>(sp);
  std::fill(stack, entry, static_cast<std::uint8_t>(noise));
  for (std::uint64_t i = 0; i < MAX_HANDED_ON / 8; i++) {
    std::uint64_t word = 0x5000000000000000 + i;
    std::memcpy(entry + 8 + 8 * i, &word, sizeof(word));
  }
}

void put32(std::byte* at, std::int64_t value) {
  auto narrow = static_cast<std::int32_t>(value);
  std::memcpy(at, &narrow, sizeof(narrow));
}

void compare(std::string& text, const std::string& what, std::uint64_t one, std::uint64_t other,
             std::uint64_t patched) {
  if (one == other && patched != one)
    text += fmt::format("{} is {:#x} instead of {:#x}\n", what, patched, one);
}

}  // namespace

void cpu_look() {
  std::memcpy(stack_seen.data(), reinterpret_cast<void*>(cpu_entry_sp - LOOKED_BELOW),
              stack_seen.size());
}

std::uint64_t entry_sp() { return reinterpret_cast<std::uint64_t>(stack) + STACK - ABOVE - 8; }

Outcome run(void* function, Noise noise, std::span<const Word> words, std::uint64_t lower,
            std::uint64_t frame) {
  cpu_function = function;
  words_there = words;
  *WAY_TAKEN = RETURNED;
  stack_seen.fill(0);
  cpu_entry_sp = entry_sp() - lower;
  fill_registers(noise);
  fill_stack(cpu_entry_sp, noise);
  cpu_before.general[RSP] = cpu_entry_sp + 8;  // the call pushes the return address
  if (frame) cpu_before.general[RBP] = frame;
  cpu_entry_bp = cpu_before.general[RBP];
  cpu_reached = cpu_after = {};
  Outcome outcome;
  {
    Faults faults;
    outcome.ran = sigsetjmp(given_up, 1) == 0;
    if (outcome.ran) cpu_call();
    outcome.pages = faults.take_pages();
  }
  outcome.way = *WAY_TAKEN;
  outcome.reached = cpu_reached;
  outcome.after = cpu_after;
  outcome.stack.assign(stack_seen.begin(), stack_seen.end());
  return outcome;
}

std::string difference(const Outcome& one, const Outcome& other, const Outcome& patched,
                       std::size_t handed_on) {
  if (!one.ran || !other.ran || !patched.ran) return "it touches memory that does not exist\n";
  std::string text;
  compare(text, "the way out", one.way, other.way, patched.way);
  for (int i = 0; i < GENERAL; i++)
    compare(text, fmt::format("register {}", i), one.reached.general[i], other.reached.general[i],
            patched.reached.general[i]);
  for (std::size_t i = 0; i < std::size(one.reached.vectors); i++)
    for (std::size_t half : {0u, 1u})
      compare(text, fmt::format("xmm{}", i), one.reached.vectors[i][half],
              other.reached.vectors[i][half], patched.reached.vectors[i][half]);
  for (std::uint64_t bit = 1; bit <= ARITHMETIC_FLAGS; bit <<= 1)
    if (bit & ARITHMETIC_FLAGS)
      compare(text, fmt::format("flag {:#x}", bit), one.reached.flags & bit,
              other.reached.flags & bit, patched.reached.flags & bit);
  for (std::size_t i = 0; i < LOOKED_BELOW + 8 + handed_on * 8; i++)
    if (patched.stack[i] != one.stack[i] &&
        (i < LOOKED_BELOW || i >= LOOKED_BELOW + 8))  // not the return address
      compare(text,
              fmt::format("stack {:+}", static_cast<long>(i) - static_cast<long>(LOOKED_BELOW)),
              one.stack[i], other.stack[i], patched.stack[i]);
  for (const auto& [at, bytes] : one.pages) {
    auto others = other.pages.find(at), patcheds = patched.pages.find(at);
    if (others == other.pages.end()) continue;
    if (patcheds == patched.pages.end()) {
      text += fmt::format("memory at {:#x} is not touched\n", at);
      continue;
    }
    for (std::size_t i = 0; i < PAGE; i++)
      if (patcheds->second[i] != bytes[i])
        compare(text, fmt::format("memory at {:#x}", at + i), bytes[i], others->second[i],
                patcheds->second[i]);
  }
  for (const auto& [at, bytes] : patched.pages)
    if (!one.pages.contains(at)) text += fmt::format("memory at {:#x} is touched\n", at);
  return text;
}

Code::Code(std::size_t functions)
    : memory_(reinterpret_cast<std::byte*>(CODE_AT)),
      size_((functions * APART + PAGE) & ~(PAGE - 1)) {
  if (mmap(reinterpret_cast<void*>(CODE_AT - NEAR), 2 * NEAR, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
           0) == MAP_FAILED ||
      map(CODE_AT, size_, PROT_READ | PROT_WRITE | PROT_EXEC) == MAP_FAILED ||
      map(CODE_AT - NEAR, PAGE, PROT_READ | PROT_WRITE) == MAP_FAILED)
    throw std::runtime_error("no memory for code");
}

Code::~Code() { munmap(memory_ - NEAR, 2 * NEAR); }

std::byte* Code::way_out(std::size_t function, std::size_t way) const {
  return memory_ + function * APART + BEGINNING + way * WAY_OUT;
}

void Code::put(std::size_t function, std::uint64_t at, std::span<const std::byte> beginning,
               std::span<const std::int64_t> targets) {
  std::byte* own = memory_ + function * APART;
  std::byte* entry = own + at;
  auto put_jump = [&](std::byte* from, std::size_t way) {
    if (from < own || from + 5 > own + BEGINNING || way >= WAYS)
      throw std::runtime_error("a beginning that goes too far");
    *from = std::byte{0xe9};
    put32(from + 1, way_out(function, way) - (from + 5));
  };
  for (std::size_t way = 0; way < WAYS; way++) {
    std::byte* out = way_out(function, way);
    std::memcpy(out, "\xc7\x05", 2);  // movl $way, WAY_TAKEN
    put32(out + 2, reinterpret_cast<std::byte*>(WAY_TAKEN) - (out + 10));
    put32(out + 6, static_cast<std::int64_t>(way));
    std::memcpy(out + 10, "\xff\x25", 2);  // jmp *behind
    put32(out + 12, own + BEHIND_AT - (out + WAY_OUT));
  }
  void (*behind)() = cpu_behind;
  std::memcpy(own + BEHIND_AT, &behind, sizeof(behind));
  std::memcpy(entry, beginning.data(), beginning.size());
  put_jump(entry + beginning.size(), BEHIND);
  for (std::size_t i = 0; i < targets.size(); i++) put_jump(entry + targets[i], FIRST_BRANCH + i);
}
