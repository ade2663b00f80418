#include "util/text/printable.hpp"

#include <catch2/catch_test_macros.hpp>

#include "util/text/markup.hpp"

using namespace cudabpf;

TEST_CASE("What could move a terminal's cursor is not printed") {
  CHECK(printable("a\033[2Jb\n\x7f") == "a?[2Jb??");
  CHECK(printable("\xc2\x9b"
                  "2J \xc2\xb5s \xc3\xa9") == "?2J \xc2\xb5s \xc3\xa9");
  CHECK(printable_lines("a\033\r\nb") == "a??\nb");
}

TEST_CASE("Bytes that are no UTF-8 are not printed: a terminal may take them for anything") {
  CHECK(printable("\xc2") == "?");
  CHECK(printable("\x9b"
                  "2J") == "?2J");
  CHECK(printable("a\xe2\x82x\xff") == "a??x?");
  CHECK(printable("\xc0\x9b") == "??");            // longer than necessary
  CHECK(printable("\xe0\x82\x9b") == "???");       // longer than necessary
  CHECK(printable("\xed\xa0\x80") == "???");       // half of a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond U+10FFFF
}

TEST_CASE("What turns the order of text around, or is not to be seen, is not printed") {
  for (char32_t code :
       {0x00adu, 0x061cu, 0x115fu, 0x180eu,  0x200bu,  0x200du,  0x200eu, 0x200fu, 0x2028u,
        0x2029u, 0x202au, 0x202eu, 0x2060u,  0x2066u,  0x2069u,  0x3164u, 0xfe0fu, 0xfeffu,
        0xffa0u, 0xfff9u, 0xffffu, 0x1fffeu, 0xe0001u, 0xe007fu, 0xe0100u}) {
    CAPTURE(static_cast<std::uint32_t>(code));
    CHECK(!is_printable(code));
  }
  for (char32_t code : {U' ', U'~', U'\u00a0', U'µ', U'…', U'█', U'東', U'€', U'😀', U'\u0301'})
    CHECK(is_printable(code));
  CHECK(printable("gpj.\xe2\x80\xae"
                  "exe") == "gpj.?exe");
}

TEST_CASE("A text is as wide as a terminal makes it") {
  CHECK(width_of("") == 0);
  CHECK(width_of("µs…█") == 4);
  CHECK(width_of("東京") == 4);
  CHECK(width_of("\xff\xe2\x80\xae") == 2);  // as wide as its printable form
  CHECK(width_of(printable("\xe1\x85\x9f")) == width_of("\xe1\x85\x9f"));
  CHECK(bytes_of("東京", 3) == 3);
  CHECK(bytes_of("東京", 4) == 6);
  CHECK(shortened("東京都", 5) == "東京…");
  CHECK(shortened("東京都", 6) == "東京都");
  CHECK(shortened("abc", 0).empty());
  CHECK(cut_in_the_middle("東京都東京都", 9) == "東京…都");
  CHECK(cut_in_the_middle("abcdefghijkl", 9) == "abcde…jkl");
}

TEST_CASE("A long text of control characters is as quickly printable as another") {
  constexpr std::size_t MANY = 1 << 20;
  std::string text;
  for (std::size_t i = 0; i < MANY; i++) text += "\xc2\x85";
  CHECK(printable(text) == std::string(MANY, '?'));
}

TEST_CASE("A picture holds no text that shows as another, and what XML takes") {
  CHECK(as_markup(printable_lines("<a & \"b\">\xe2\x80\xae\x01\n\xff")) ==
        "&lt;a &amp; &quot;b&quot;&gt;??\n?");
}
