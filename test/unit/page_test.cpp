#include "util/page.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

Terminal wide(unsigned width) {
  Terminal terminal;
  terminal.width = width;
  return terminal;
}

}  // namespace

TEST_CASE("What could move a terminal's cursor is not printed") {
  CHECK(printable("a\033[2Jb\n\x7f") == "a?[2Jb??");
  CHECK(printable("\xc2\x9b"
                  "2J \xc2\xb5s \xc3\xa9") == "?2J \xc2\xb5s \xc3\xa9");
  CHECK(printable("\xc2") == "\xc2");
}

TEST_CASE("A paragraph is broken between words, but not between a number and its unit") {
  Page page(wide(80));
  page.term("word", std::string(58, 'x') + " 30 ms that it took");
  CHECK(page.take() ==
        "  word            " + std::string(58, 'x') + "\n                  30 ms that it took\n");
  page.paragraph(std::string(100, 'x'), 2);
  CHECK(page.take() == "  " + std::string(78, 'x') + "\n  " + std::string(22, 'x') + "\n");
  page.paragraph(std::string(77, 'x') + "ééé", 2);
  CHECK(page.take() == "  " + std::string(77, 'x') + "é\n  éé\n");
}

TEST_CASE("A long text of control characters is as quickly printable as another") {
  constexpr std::size_t MANY = 4 << 20;
  std::string text;
  for (std::size_t i = 0; i < MANY; i++) text += "\xc2\x85";
  CHECK(printable(text) == std::string(MANY, '?'));
}
