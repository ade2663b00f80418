// Runs functions of which only the beginning is there, and says all that they have done to
// registers and memory. Memory that they touch comes into being where they touch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cpu.hpp"

// The ways out of a function's beginning. Branches are counted from FIRST_BRANCH on.
enum Way : std::uint32_t { RETURNED, BEHIND, THROUGH_SLOT, FIRST_BRANCH, WAYS = FIRST_BRANCH + 3 };

// The place in memory for functions' beginnings, far from everything else.
class Code {
 public:
  static constexpr std::size_t APART = 192;  // from one function's line to the next one's

  explicit Code(std::size_t functions);
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  // Writes the beginning `at` bytes behind the function's line. Behind it, and where it branches
  // to, there are jumps to cpu_behind().
  void put(std::size_t function, std::uint64_t at, std::span<const std::byte> beginning,
           std::span<const std::int64_t> targets);

  std::byte* at(std::size_t offset) const { return memory_ + offset; }
  // What goes to cpu_behind() by that way.
  std::byte* way_out(std::size_t function, std::size_t way) const;
  std::size_t size() const { return size_; }

 private:
  std::byte* memory_;
  std::size_t size_;
};

// What a function finds where it must not count on anything: no bit is the same in both.
enum class Noise : std::uint64_t { one = 0x1111111111111111, other = ~one };

// What a function finds at an address that it refers to.
struct Word {
  std::uint64_t address;
  std::size_t size;
  std::uint64_t value;
};

struct Outcome {
  bool ran = false;  // false: it has touched memory that does not exist
  std::uint32_t way = RETURNED;
  cpu_state reached{}, after{};
  std::vector<std::uint8_t> stack;                           // around the function's entry
  std::map<std::uint64_t, std::vector<std::uint8_t>> pages;  // that it has touched
};

// Calls it as if it had been called with the stack pointer this many bytes lower, by a function
// whose frame pointer is that; 0, 0: by the caller itself.
Outcome run(void* function, Noise noise, std::span<const Word> words, std::uint64_t lower = 0,
            std::uint64_t frame = 0);
// The stack pointer at the entry of a function that is called with `lower` 0.
std::uint64_t entry_sp();

// What of `patched` differs from what is the same in both others; empty: nothing. This many words
// above the return address must be the same.
std::string difference(const Outcome& one, const Outcome& other, const Outcome& patched,
                       std::size_t handed_on);
