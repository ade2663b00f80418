// Messages in Protocol Buffers' wire format, written and read field by field:
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
    eight_bytes(value);
  }
  void real(std::uint32_t field, double value) {
    fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  // A repeated field of them, packed.
  void all_fixed64(std::uint32_t field, std::span<const std::uint64_t> values) {
    tag(field, DELIMITED);
    varint(values.size() * sizeof(std::uint64_t));
    for (std::uint64_t value : values) eight_bytes(value);
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
  friend class ProtobufReader;
  enum WireType : std::uint8_t { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };

  void tag(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | type); }
  void varint(std::uint64_t value) {
    char digits[10];
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) digits[size++] = static_cast<char>(value | 0x80);
    digits[size++] = static_cast<char>(value);
    bytes_.append(digits, size);
  }

  void eight_bytes(std::uint64_t value) {
    for (unsigned i = 0; i < 8; i++) bytes_ += static_cast<char>(value >> (8 * i));
  }

  std::string bytes_;
};

// The fields of a message that anybody may have written.
class ProtobufReader {
 public:
  struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;  // a number, not yet taken for a signed or a real one
    std::string_view text;    // or a text, or a message
  };
  explicit ProtobufReader(std::string_view bytes) : bytes_(bytes) {}

  // Nothing: it was the last, or what follows is no field.
  std::optional<Field> next() {
    auto tag = varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > MAX_FIELDS) return std::nullopt;
    Field field;
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    std::optional<std::uint64_t> value;
    switch (*tag & 7) {
      case ProtobufMessage::VARINT:
        value = varint();
        break;
      case ProtobufMessage::FIXED64:
        value = fixed(8);
        break;
      case ProtobufMessage::FIXED32:
        value = fixed(4);
        break;
      case ProtobufMessage::DELIMITED:
        value = varint();
        if (!value || *value > bytes_.size()) return std::nullopt;
        field.text = bytes_.substr(0, *value);
        bytes_.remove_prefix(*value);
        break;
      default:
        break;
    }
    if (!value) return std::nullopt;
    field.value = *value;
    return field;
  }

 private:
  static constexpr std::uint64_t MAX_FIELDS = (1 << 29) - 1;

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < bytes_.size(); i++) {
      auto byte = static_cast<std::uint8_t>(bytes_[i]);
      value |= std::uint64_t{byte & 0x7fu} << (7 * i);
      if (byte & 0x80) continue;
      bytes_.remove_prefix(i + 1);
      return value;
    }
    return std::nullopt;
  }
  std::optional<std::uint64_t> fixed(std::size_t size) {
    if (bytes_.size() < size) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; i++)
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(size);
    return value;
  }

  std::string_view bytes_;
};

}  // namespace cudabpf
