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
  page.hanging("- ", HOSTILE, 2);
  CHECK(page.take() == "- a?[2J???\n");
  page.term("what", HOSTILE);
  CHECK(page.take() == "  what            a?[2J???\n");
  page.paragraph(HOSTILE, 2);
  CHECK(page.take() == "  a?[2J???\n");
}

TEST_CASE("Colour is added to a heading that is printable, and no heading is a screenful") {
  Terminal terminal = wide(80);
  terminal.color = true;
  Page page(terminal);
  page.heading("a\033b " + std::string(5000, 'x'));
  std::string bold = "\033[1m", plain = "\033[0m\n", line(80, 'x');
  CHECK(page.take() == bold + "a?b" + plain + bold + line + plain + bold + line + plain + bold +
                           std::string(75, 'x') + "…" + plain);
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

TEST_CASE("Where a text does not fit beside its term, it is below it") {
  Page page(wide(40));
  page.term("word", "and what there is to say of it, at length");
  CHECK(page.take() ==
        "  word\n"
        "    and what there is to say of it, at\n"
        "    length\n");
  Page narrower(wide(1));
  CHECK(narrower.width() == 40);
}

TEST_CASE("A statement's title is bold, also where it takes more than a line") {
  Terminal terminal = wide(40);
  terminal.color = true;
  Page page(terminal);
  page.statement("Short", "and its text.");
  CHECK(page.take() == "\033[1mShort\033[0m: and its text.\n");
  page.statement("No certain difference between the iterations", "905 us in B.");
  CHECK(page.take() ==
        "\033[1mNo certain difference between the\niterations\033[0m: 905 us in B.\n");
}
