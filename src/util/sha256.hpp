// SHA-256 (FIPS 180-4), for names of contents that must not depend on who computes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudabpf {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // at the end, once

 private:
  void block(const unsigned char* bytes);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> part_{};  // of a block
  std::uint64_t size_ = 0;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace cudabpf
