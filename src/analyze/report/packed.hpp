// Bytes as a report's page takes them: deflated, and as base64.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analyze/export/byte_stream.hpp"

namespace cudabpf::analyze {

// A series of numbers, small ones in few bytes: seven bits a byte, the lowest first.
class PackedNumbers {
 public:
  void add(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
    bytes_ += static_cast<char>(number);
  }
  // Those near zero are small, whichever sign they have.
  void add_signed(std::int64_t number) {
    auto bits = static_cast<std::uint64_t>(number);
    add(bits << 1 ^ (number < 0 ? ~std::uint64_t{0} : 0));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void put_packed(ByteStream& out, std::string_view bytes);

}  // namespace cudabpf::analyze
