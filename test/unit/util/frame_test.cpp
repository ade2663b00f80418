#include "util/console/frame.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "util/text/printable.hpp"

using namespace cudabpf;

namespace {

// A terminal that understands what difference() writes, and nothing else. To be distinct, each
// cell is the text in it.
class Screenful {
 public:
  Screenful(std::size_t rows, std::size_t columns)
      : columns_(columns), cells_(rows * columns, "x") {}

  void take(std::string_view text) {
    while (!text.empty()) {
      if (text.starts_with("\033[")) {
        std::size_t end = text.find_first_of("HJm");
        REQUIRE(end != std::string_view::npos);
        sequence(std::string(text.substr(2, end - 2)), text[end]);
        text.remove_prefix(end + 1);
        continue;
      }
      auto [code, size] = first_character(text);
      REQUIRE(size);
      REQUIRE(is_printable(code));
      std::size_t width = width_of(text.substr(0, size));
      REQUIRE(at_ % columns_ + width <= columns_);
      for (std::size_t i = 0; i < width; i++) cells_.at(at_ + i) = "";
      cells_[at_] = text.substr(0, size);
      at_ += width;
      text.remove_prefix(size);
      written++;
    }
  }
  std::string line(std::size_t row) const {
    std::string text;
    for (std::size_t i = 0; i < columns_; i++) text += cells_.at(row * columns_ + i);
    return text;
  }
  std::size_t written = 0;

 private:
  void sequence(const std::string& parameters, char last) {
    if (last == 'J') {
      for (std::string& cell : cells_) cell = " ";
    } else if (last == 'H') {
      std::size_t semicolon = parameters.find(';');
      at_ = (std::stoul(parameters) - 1) * columns_ + std::stoul(parameters.substr(semicolon + 1)) -
            1;
    }
  }

  std::size_t columns_, at_ = 0;
  std::vector<std::string> cells_;
};

ScreenFrame frame_of(std::initializer_list<std::string_view> lines, std::size_t columns = 8) {
  ScreenFrame frame({lines.size(), columns});
  std::size_t row = 0;
  for (std::string_view line : lines) frame.write(row++, 0, line);
  return frame;
}

}  // namespace

TEST_CASE("text in a frame is cut where the frame ends, and says so") {
  ScreenFrame frame({2, 10});
  CHECK(frame.write(0, 0, "abcdefghijkl") == 10);
  CHECK(frame.write(1, 2, "abcdef", {}, 4) == 4);
  CHECK(frame.write(7, 0, "beyond") == 0);
  CHECK(frame.write(0, 10, "beyond") == 0);
  CHECK(frame.text() == "abcdefghi…\n  abc…\n");
  ScreenFrame ascii({1, 6}, false);
  ascii.write(0, 0, "é中abcd");
  CHECK(ascii.text() == "???ab~\n");
}

TEST_CASE("a number in a frame is whole or not there") {
  ScreenFrame frame({2, 6});
  frame.write_right(0, 0, 6, "1,234");
  frame.write_right(1, 0, 4, "1,234");
  CHECK(frame.text() == " 1,234\n####\n");
}

TEST_CASE("text in a frame is cut before a number rather than in it") {
  ScreenFrame frame({3, 10});
  frame.write(0, 0, "pid 1234567");
  frame.write(1, 0, "1234567890123");
  frame.write(2, 0, "the last 12 of");
  CHECK(frame.text() == "pid …\n…\nthe last …\n");
}

TEST_CASE("half of a wide character is never left in a frame") {
  ScreenFrame frame = frame_of({"中中ab", "中中ab", "中中ab"});
  frame.write(0, 1, "x");
  frame.write(1, 2, "x");
  frame.write(2, 3, "x");
  CHECK(frame.text() == " x中ab\n中x ab\n中 xab\n");
  CHECK(frame_of({"abc中"}, 4).text() == "abc…\n");
  CHECK(frame_of({"ab中"}, 4).text() == "ab中\n");
}

TEST_CASE("hostile text in a frame moves no cursor") {
  ScreenFrame frame = frame_of({"\033[2J\n\u202e"});
  CHECK(frame.text() == "?[2J??\n");
}

TEST_CASE("the difference of two frames turns one into the other") {
  const ScreenFrame frames[] = {frame_of({"12345678", "", "abc"}),
                                frame_of({"12945678", "中中", "abd"}),
                                frame_of({"", "x中y", "e\u0301tc"}), frame_of({"a", "b", "c"})};
  for (const ScreenFrame& before : frames)
    for (const ScreenFrame& now : frames) {
      Screenful screen(3, 8);
      screen.take(difference(nullptr, before, true));
      screen.take(difference(&before, now, true));
      Screenful expected(3, 8);
      expected.take(difference(nullptr, now, true));
      for (std::size_t row = 0; row < 3; row++) CHECK(screen.line(row) == expected.line(row));
    }
}

TEST_CASE("what stays is not drawn again") {
  ScreenFrame before = frame_of({"12345678", "abcdefgh"}), now = frame_of({"12345978", "abcdefgh"});
  CHECK(difference(&before, before, true).empty());
  CHECK(difference(&before, now, true) == "\033[1;6H\033[0m9\033[0m");
  ScreenFrame larger({3, 8});
  CHECK(difference(&before, larger, true).starts_with("\033[0m\033[2J"));
}

TEST_CASE("after a foreign character the cursor is placed, however wide a terminal draws it") {
  ScreenFrame now = frame_of({"中a"});
  CHECK(difference(nullptr, now, true) ==
        "\033[0m\033[2J\033[1;1H\033[0m  \033[1;1H中\033[1;3Ha\033[0m");
}

TEST_CASE("without colour, what is selected is still reversed") {
  ScreenFrame now({1, 3});
  now.write(0, 0, "a", {Colour::red, true});
  now.write(0, 1, "b", {Colour::green, false, true});
  CHECK(difference(nullptr, now, true) ==
        "\033[0m\033[2J\033[1;1H\033[0;1;31ma\033[0;7;32mb\033[0m");
  CHECK(difference(nullptr, now, false) == "\033[0m\033[2J\033[1;1H\033[0;1ma\033[0;7mb\033[0m");
}
