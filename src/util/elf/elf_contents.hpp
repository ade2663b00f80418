// What is wanted from a library's file, and how one process sends it to another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/elf/elf.hpp"
#include "util/result.hpp"

namespace cudabpf::elf {

struct Contents {
  Machine machine = Machine::x86_64;
  std::string build_id;
  std::string soname;  // empty: none, or not one that a linker would be given
  std::vector<Function> functions;
  // Functions that do not begin with push %rbp, if Wanted has them; only on x86-64.
  std::uint64_t other_prologues = 0;
  std::vector<StaticProbe> probes;
  // Functions that are too many, or have names that no compiler makes; likewise probes.
  std::uint64_t left_out = 0;
};

struct Wanted {
  char prefix[15] = {};  // of functions' names, or of probes'; NUL-terminated
  bool probes = false;   // not functions
  bool prologues = false;
  std::uint8_t code = 0;  // this many of each function's first bytes
};

Result<Contents> contents_of(const Image& image, const Wanted& wanted);

constexpr std::size_t MAX_ANSWER = 32 << 20;
std::string encode(const Result<Contents>& contents);
// Trusts nothing: an attacker who has taken over the sending process may have made the bytes. The
// worst that they can do is to lie about the file.
Result<Contents> decode(std::string_view answer, std::uint64_t file_size);

}  // namespace cudabpf::elf
