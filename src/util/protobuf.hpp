// Writes messages in Protocol Buffers' wire format, field by field:
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudabpf {

class ProtobufMessage {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, VARINT);
    varint(value);
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, FIXED64);
    for (unsigned i = 0; i < 8; i++) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void text(std::uint32_t field, std::string_view text) {
    tag(field, DELIMITED);
    varint(text.size());
    bytes_ += text;
  }
  void message(std::uint32_t field, const ProtobufMessage& message) { text(field, message.bytes_); }

  bool empty() const { return bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }  // keeps the memory, so one object can serve many messages

 private:
  enum WireType : std::uint8_t { VARINT = 0, FIXED64 = 1, DELIMITED = 2 };

  void tag(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | type); }
  void varint(std::uint64_t value) {
    char digits[10];
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) digits[size++] = static_cast<char>(value | 0x80);
    digits[size++] = static_cast<char>(value);
    bytes_.append(digits, size);
  }

  std::string bytes_;
};

}  // namespace cudabpf
