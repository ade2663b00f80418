#include "util/protobuf.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::ProtobufMessage;
using cudabpf::ProtobufReader;

namespace {

std::string number(std::uint32_t field, std::uint64_t value) {
  ProtobufMessage message;
  message.number(field, value);
  return std::string(message.bytes());
}

}  // namespace

TEST_CASE("Numbers of Protocol Buffers take seven bits a byte") {
  CHECK(number(1, 0) == std::string("\x08\x00", 2));
  CHECK(number(1, 127) == "\x08\x7f");
  CHECK(number(1, 128) == "\x08\x80\x01");
  CHECK(number(15, 150) == "\x78\x96\x01");
  CHECK(number(16, 1) == "\x80\x01\x01");
  CHECK(number(1, ~std::uint64_t{0}) == "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("Messages inside of messages, texts and fixed numbers") {
  ProtobufMessage inner;
  CHECK(inner.empty());
  inner.text(2, "ab");
  inner.fixed64(47, 0x0102030405060708);
  CHECK(inner.bytes() ==
        "\x12\x02"
        "ab\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01");
  ProtobufMessage outer;
  outer.message(1, inner);
  CHECK(outer.bytes() == "\x0a\x0e" + std::string(inner.bytes()));
  outer.clear();
  CHECK(outer.empty());
}

TEST_CASE("Real numbers, and many numbers in one field") {
  ProtobufMessage message;
  message.real(4, 1.5);
  CHECK(message.bytes() == std::string("\x21\0\0\0\0\0\0\xf8\x3f", 9));
  message.clear();
  const std::uint64_t numbers[] = {1, 0x0100};
  message.all_fixed64(6, numbers);
  CHECK(message.bytes() == std::string("\x32\x10\1\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 18));
}

TEST_CASE("What was written is read again") {
  ProtobufMessage message;
  message.number(1, ~std::uint64_t{0});
  message.text(16, "ab");
  message.fixed64(3, 0x0102030405060708);
  std::string bytes(message.bytes());
  bytes += std::string("\x25\x01\0\0\0", 5);  // 32 bits in field 4
  ProtobufReader reader(bytes);
  auto number = reader.next(), text = reader.next(), fixed = reader.next(), small = reader.next();
  REQUIRE(small);
  CHECK(number->number == 1);
  CHECK(number->value == ~std::uint64_t{0});
  CHECK(text->number == 16);
  CHECK(text->text == "ab");
  CHECK(fixed->value == 0x0102030405060708);
  CHECK(small->value == 1);
  CHECK_FALSE(reader.next());
}

TEST_CASE("What is no message ends where it stops making sense") {
  for (const char* wrong : {"\x08",
                            "\x0a\x05"
                            "abcd",
                            "\x0b", "\x09\x01\x02", "\x0d\x01",
                            "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x06\x01"}) {
    INFO(wrong);
    CHECK_FALSE(ProtobufReader(wrong).next());
  }
  CHECK_FALSE(ProtobufReader(std::string_view("\0\1", 2)).next());  // there is no field 0
  CHECK_FALSE(ProtobufReader("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").next());
}
