// A program's memory, made up: bytes at addresses, and nothing between.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collect/python/program_memory.hpp"

namespace cudabpf {

class FakeMemory final : public ProgramMemory {
 public:
  bool read(std::uint64_t address, std::span<std::byte> to) const override {
    for (std::byte& byte : to) {
      auto known = bytes_.find(address++);
      if (known == bytes_.end()) return false;
      byte = known->second;
    }
    reads++;
    return true;
  }
  void put(std::uint64_t address, std::string_view bytes) {
    for (char c : bytes) bytes_[address++] = static_cast<std::byte>(c);
  }
  template <typename T>
  void put_value(std::uint64_t address, const T& value) {
    put(address, {reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  void forget(std::uint64_t address) { bytes_.erase(address); }

  mutable std::uint64_t reads = 0;

 private:
  std::map<std::uint64_t, std::byte> bytes_;
};

}  // namespace cudabpf
