#include "util/page/page.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

Terminal wide(unsigned width) {
  Terminal terminal;
  terminal.width = width;
  return terminal;
}

}  // namespace

TEST_CASE("A page shows no text that could move the cursor, however it is given") {
  constexpr const char* HOSTILE = "a\033[2J\xc2\x9b\xe2\x80\xae\n";
  Page page(wide(80));
  page.line(HOSTILE);
  CHECK(page.take() == "a?[2J???\n");
  page.heading(HOSTILE);
  CHECK(page.take() == "a?[2J???\n");
  page.row(HOSTILE, {"1"});
  CHECK(page.take().starts_with("  a?[2J???  "));
  page.term("what", HOSTILE);
  CHECK(page.take() == "  what            a?[2J???\n");
  page.paragraph(HOSTILE, 2);
  CHECK(page.take() == "  a?[2J???\n");
}

TEST_CASE("Colour is added to a heading that is printable, and the heading fits") {
  Terminal terminal = wide(80);
  terminal.color = true;
  Page page(terminal);
  page.heading("a\033b" + std::string(100, 'x'));
  CHECK(page.take() == "\033[1ma?b" + std::string(76, 'x') + "…\033[0m\n");
}

TEST_CASE("Columns are aligned behind wide characters and replaced ones") {
  Page page(wide(80));
  page.heading("names", {"n"});
  page.take();
  for (const char* name : {"plain", "東京都の名", "a\xe2\x80\x8b\xff"}) page.row(name, {"12"});
  std::string text = page.take();
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    std::string line = text.substr(at, text.find('\n', at) - at);
    CHECK(width_of(line) == 80);
    CHECK(line.ends_with(" 12"));
  }
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
