#include "util/whole_number.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>

using namespace cudabpf;

TEST_CASE("Text is a number as a whole, or not at all") {
  CHECK(whole_number<std::uint16_t>("65535") == 65535);
  CHECK(whole_number<std::uint64_t>("ff", 16) == 255);
  CHECK(whole_number<int>("-1") == -1);
  for (const char* text : {"", "65536", "-1", "+1", " 1", "1 ", "1x", "0x1"})
    CHECK_FALSE(whole_number<std::uint16_t>(text));
  std::uint32_t number = 7;
  CHECK_FALSE(read_number("99999999999", number));
  CHECK_FALSE(read_number("12x", number));
  CHECK(number == 7);
}
