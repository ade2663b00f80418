#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "util/text/json.hpp"

using namespace cudabpf;

namespace {

template <typename Put, typename Value>
std::string made(Put put, Value value) {
  char text[64];
  return {text, put(text, value)};
}

}  // namespace

TEST_CASE("JSON strings are escaped, and hold only UTF-8") {
  struct Case {
    std::string text, json;
  };
  using namespace std::string_literals;
  const Case cases[] = {
      {"", R"("")"},
      {"add(int)", R"j("add(int)")j"},
      {"a\"b\\c", R"("a\"b\\c")"},
      {"\b\f\n\r\t", R"("\b\f\n\r\t")"},
      {"\x01\x1f\x7f", R"("\u0001\u001f\u007f")"},
      {"a\0b"s, R"("a\u0000b")"},
      {"µ€😀", R"("µ€😀")"},
      {"\xff", "\"\xef\xbf\xbd\""},
      {"a\x80z", "\"a\xef\xbf\xbdz\""},
      {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                  // longer than necessary
      {"\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},  // longer than necessary
      {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},  // a surrogate
      {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
      {"\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},  // cut within a character
      {"\xe2\x82x", "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
      {"a\xc2\x9b"
       "2J",
       R"("a\u009b2J")"},  // a terminal would act on it
      {"a\xe2\x80\xaez", R"("a\u202ez")"},
      {"\xf3\xa0\x80\x81", R"("\udb40\udc01")"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.json);
    CHECK(json::quoted(c.text) == c.json);
    CHECK(nlohmann::json::parse(json::quoted(c.text)).is_string());
  }
}

TEST_CASE("What is escaped means the same") {
  for (const char* text :
       {"\xc2\x9b", "\xe2\x80\xae", "\xf3\xa0\x80\x81", "\x7f", "\xef\xbb\xbf"}) {
    CHECK(nlohmann::json::parse(json::quoted(text)) == text);
    nlohmann::json object = {{"a\nb", text}};
    std::string dumped = json::without_invisible(object.dump(2));
    CHECK(dumped.find(text) == std::string::npos);
    CHECK(nlohmann::json::parse(dumped) == object);
  }
  CHECK(json::without_invisible("{\n  \"µ\": \"東\"\n}") == "{\n  \"µ\": \"東\"\n}");
}

TEST_CASE("Any bytes become valid JSON within the promised size") {
  for (int first = 0; first < 256; first++)
    for (int second = 0; second < 256; second++) {
      std::string text = {static_cast<char>(first), static_cast<char>(second), 'x'};
      std::string quoted = json::quoted(text);
      REQUIRE(quoted.size() <= 2 + json::MAX_EXPANSION * text.size());
      REQUIRE(nlohmann::json::accept(quoted));
      REQUIRE(quoted.ends_with("x\""));
      if (first < 0x80 && second < 0x80) REQUIRE(nlohmann::json::parse(quoted) == text);
    }
}

TEST_CASE("Numbers at their limits") {
  constexpr auto MAX = std::numeric_limits<std::uint64_t>::max();
  CHECK(made(json::put_number, MAX) == "18446744073709551615");
  CHECK(made(json::put_number, 0) == "0");
  CHECK(made(json::put_signed, std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(made(json::put_address, 0) == R"("0x0")");
  CHECK(made(json::put_address, 15) == R"("0xf")");
  CHECK(made(json::put_address, 16) == R"("0x10")");
  CHECK(made(json::put_address, 0x7f2a40000000) == R"("0x7f2a40000000")");
  CHECK(made(json::put_address, MAX) == R"("0xffffffffffffffff")");
  CHECK(made(json::put_microseconds, 0) == "0.000");
  CHECK(made(json::put_microseconds, 7) == "0.007");
  CHECK(made(json::put_microseconds, 1020) == "1.020");
  CHECK(made(json::put_microseconds, MAX) == "18446744073709551.615");
}
