// What is wanted of a library's file, and how one process tells another.
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
  std::string soname;  // empty: none, or none that a linker would be given
  std::vector<Function> functions;
  // Those that do not begin with push %rbp, if that was asked; only on x86-64.
  std::uint64_t other_prologues = 0;
  std::uint64_t left_out = 0;  // functions with names that no compiler makes, or too many
};

struct Wanted {
  char prefix[15] = {};  // of functions' names; NUL-terminated
  bool prologues = false;
};

Result<Contents> contents_of(const Image& image, const Wanted& wanted);

constexpr std::size_t MAX_ANSWER = 32 << 20;
std::string encode(const Result<Contents>& contents);
// Believes nothing: the bytes may be made by whoever has taken over the process that sends them.
// The worst that they can do is to say something else of the file than is true.
Result<Contents> decode(std::string_view answer, std::uint64_t file_size);

}  // namespace cudabpf::elf
