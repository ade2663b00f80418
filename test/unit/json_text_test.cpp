#include "util/json_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <random>

using namespace cudabpf;

namespace {

std::string json_of(std::string_view text) {
  std::string out = "before:";
  append_json_string(out, text);
  REQUIRE(out.starts_with("before:"));
  return out.substr(7);
}

const std::string REPLACED = "\xef\xbf\xbd";

}  // namespace

TEST_CASE("Text becomes a JSON string") {
  CHECK(json_of("") == "\"\"");
  CHECK(json_of("void f<int>(char const*)") == "\"void f<int>(char const*)\"");
  CHECK(json_of("a\"b\\c/d") == "\"a\\\"b\\\\c/d\"");
  CHECK(json_of("\n\r\t") == "\"\\n\\r\\t\"");
  CHECK(json_of(std::string_view("\x01\x1f\x7f\0", 4)) == "\"\\u0001\\u001f\\u007f\\u0000\"");
}

TEST_CASE("UTF-8 stays; what is none is replaced, a byte at a time") {
  for (std::string_view good : {"\u00e9", "\u20ac", "\U0001f600", "\uffff", "\xed\x9f\xbf",
                                "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "\xc2\x80"})
    CHECK(json_of(good) == "\"" + std::string(good) + "\"");
  struct Case {
    std::string_view bytes;
    int replaced;
  };
  for (auto [bytes, replaced] : {
           Case{"\x80", 1},              // a continuation alone
           Case{"\xff", 1},              // never part of UTF-8
           Case{"\xc3", 1},              // cut at the end
           Case{"\xe2\x82", 2},          // cut at the end
           Case{"\xc0\xaf", 2},          // longer than need be
           Case{"\xe0\x80\xaf", 3},      // longer than need be
           Case{"\xf0\x80\x80\xaf", 4},  // longer than need be
           Case{"\xed\xa0\x80", 3},      // half of a surrogate pair
           Case{"\xf4\x90\x80\x80", 4},  // beyond U+10FFFF
           Case{"\xf5\x80\x80\x80", 4},
       }) {
    std::string expected;
    for (int i = 0; i < replaced; i++) expected += REPLACED;
    CHECK(json_of(bytes) == "\"" + expected + "\"");
  }
  CHECK(json_of("a\xe2z") == "\"a" + REPLACED + "z\"");
}

TEST_CASE("Any bytes become valid JSON, and ASCII comes back as it was") {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; i++) {
    std::string text(random() % 40, '\0');
    bool ascii = i % 2;
    for (char& c : text) c = static_cast<char>(random() % (ascii ? 128 : 256));
    std::string json = json_of(text);
    REQUIRE(nlohmann::json::accept(json));
    if (ascii) CHECK(nlohmann::json::parse(json).get<std::string>() == text);
  }
}
