// Checks the page of `cudabpf top` at several sizes, byte for byte.
#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include "golden.hpp"
#include "sink/top/top_page.hpp"
#include "support/fewer.hpp"
#include "support/sample_top.hpp"
#include "util/text/printable.hpp"

using namespace cudabpf;

namespace {

Key letter(char32_t character) { return {Key::Code::character, character}; }

struct Shot {
  TopInterval interval = sample_top();
  TopHistory history = sample_top_history();
  TopView view;
  std::string message;

  void press(std::initializer_list<Key> keys) {
    for (const Key& key : keys) view.press(key, interval, 5);
  }
  std::string text(ScreenFrame::Size size, bool utf8 = true) const {
    return draw_top({interval, history, {}, message}, view, size, utf8).text();
  }
};

}  // namespace

TEST_CASE("the page of top looks as it did, at any size") {
  Shot shot;
  for (auto size :
       {ScreenFrame::Size{24, 80}, ScreenFrame::Size{40, 120}, ScreenFrame::Size{10, 40}})
    check_golden(fmt::format("top/{}x{}.txt", size.columns, size.rows), shot.text(size));
  check_golden("top/80x24_ascii.txt", shot.text({24, 80}, false));
}

TEST_CASE("the page of top looks as it did, whatever one has chosen to see") {
  Shot shot;
  shot.message = "cudabpf: warning: something is not as it should be";
  shot.press({{Key::Code::enter}, letter('p')});
  TopLosses lost{1204, true, {}};
  check_golden("top/80x24_paused.txt", draw_top({shot.interval, shot.history, lost, shot.message},
                                                shot.view, {24, 80}, true)
                                           .text());
  shot.press({letter('C')});
  check_golden("top/80x24_columns.txt", shot.text({24, 80}));
  shot.press({{Key::Code::escape}, letter('?')});
  check_golden("top/80x24_help.txt", shot.text({24, 80}));
  shot.press({letter('x'), letter('\\'), letter('l'), letter('l')});
  check_golden("top/80x24_filter.txt", shot.text({24, 80}));
}

TEST_CASE("every page of top fits, and no number is cut") {
  Shot shot;
  shot.press({{Key::Code::enter}});
  for (std::size_t rows = 1; rows < 60; rows++)
    for (std::size_t columns = 1; columns < 200; columns += 3 * FEWER) {
      std::string text = shot.text({rows, columns});
      CHECK(text.find("##") == std::string::npos);
      CHECK(text.find('\033') == std::string::npos);
    }
  CHECK(shot.text({9, 40}).find("too small") != std::string::npos);
  CHECK(shot.text({10, 39}).find("terminal is too") != std::string::npos);
}
