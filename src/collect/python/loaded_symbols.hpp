// The symbols of a program or library as it lies in a program's memory: where the dynamic linker
// finds them, too. Only single numbers are read, each within fixed bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collect/python/program_memory.hpp"

namespace cudabpf {

class LoadedSymbols {
 public:
  // `start`: where the file's first page is mapped. Nothing: there is no such file.
  static std::optional<LoadedSymbols> at(const ProgramMemory& memory, std::uint64_t start);

  std::optional<std::uint64_t> address_of(std::string_view name) const;

 private:
  explicit LoadedSymbols(const ProgramMemory& memory) : memory_(memory) {}
  bool is_named(std::uint64_t symbol, std::string_view name) const;

  const ProgramMemory& memory_;
  std::uint64_t bias_ = 0;  // what is added to the file's addresses
  std::uint64_t symbols_ = 0, strings_ = 0, hashes_ = 0;
};

}  // namespace cudabpf
