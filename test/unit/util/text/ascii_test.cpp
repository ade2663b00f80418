#include "util/text/ascii.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::in_ascii;

TEST_CASE("What pages are written with has a likeness in ASCII") {
  CHECK(in_ascii("3.6 µs ± 1, 2 × H200 …") == "3.6 us ~ 1, 2 x H200 .");
  CHECK(in_ascii("▁▄█│") == "_o#|");
  CHECK(in_ascii("plain\n\x1b[1mbold\x1b[0m\t") == "plain\n\x1b[1mbold\x1b[0m\t");
}

TEST_CASE("All else is a question mark a character, whatever its bytes are") {
  CHECK(in_ascii("ä中🙂") == "???");
  CHECK(in_ascii("\xff\xfe") == "??");
  CHECK(in_ascii("a\x80\x80") == "a?");
  CHECK(in_ascii("") == "");
}
