#include "util/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/text/wrapped.hpp"

namespace cudabpf {

namespace {
constexpr std::size_t TERM = 18;       // where the text after a term's word begins
constexpr unsigned ROOM_FOR_TWO = 60;  // columns that a word and a text beside it take
constexpr std::size_t MAX_HEADING_LINES = 3;
}  // namespace

std::string figure_or_blank(std::uint64_t count) { return count ? human_count(count) : ""; }

Page::Page(const Terminal& terminal, unsigned max_width)
    : width_(std::clamp(terminal.width, MIN_WIDTH, max_width)),
      max_width_(max_width),
      height_(terminal.height),
      color_(terminal.color) {}

void Page::line(std::string_view text) { painted(printable(text)); }

void Page::leave_out(std::string_view column) {
  if (!column.empty() && std::find(left_out_.begin(), left_out_.end(), column) == left_out_.end())
    left_out_.emplace_back(column);
}

bool Page::say_left_out(bool has_json) {
  if (left_out_.empty()) return false;
  std::string text = "hidden columns:";
  for (const std::string& column : left_out_)
    text += (&column == &left_out_.front() ? " " : ", ") + column;
  if (width_ < max_width_)
    text += fmt::format(" (widen the terminal, {}set COLUMNS={}{})", has_json ? "" : "or ",
                        max_width_, has_json ? ", or use --json" : "");
  else if (has_json)
    text += " (use --json)";
  if (!text_.ends_with("\n\n")) blank();
  paragraph(text, 2);
  left_out_.clear();
  return true;
}

void Page::heading(std::string_view name) {
  std::string text = shortened(printable(name), MAX_HEADING_LINES * std::size_t{width_});
  for (std::string_view line_text : wrapped(text, width_))
    painted(color_ ? fmt::format("\033[1m{}\033[0m", line_text) : std::string(line_text));
}

void Page::term(std::string_view word, std::string_view text) {
  if (width_ >= ROOM_FOR_TWO) return hanging(fmt::format("  {:<{}}", word, TERM - 2), text, TERM);
  line(fmt::format("  {}", word));
  paragraph(text, 4);
}

void Page::hanging(std::string_view begin, std::string_view text, std::size_t indent) {
  if (text.empty()) return painted(begin);
  std::size_t at = text_.size();
  paragraph(text, indent);
  text_.replace(at, indent, begin);
}

void Page::statement(std::string_view title, std::string_view text) {
  std::size_t begin = text_.size();
  std::string name = printable(title);
  paragraph(fmt::format("{}: {}", name, text), 0);
  // As it is shown there: on a narrow terminal it may continue on the next line.
  std::string shown = text_.substr(begin, name.size());
  if (color_) text_.replace(begin, name.size(), fmt::format("\033[1m{}\033[0m", shown));
}

void Page::paragraph(std::string_view text, std::size_t indent) {
  for (std::string_view line_text : wrapped(text, width_ - indent))
    line(std::string(indent, ' ') + std::string(line_text));
}

}  // namespace cudabpf
