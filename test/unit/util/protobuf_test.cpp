#include "util/protobuf.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::ProtobufMessage;

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
