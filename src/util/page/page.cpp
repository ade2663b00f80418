#include "util/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cudabpf {

namespace {
constexpr std::size_t MIN_NAME = 21;
constexpr unsigned COLUMN = 11;   // of figures
constexpr std::size_t TERM = 18;  // where the text after a term's word begins

bool is_digit(char c) { return c >= '0' && c <= '9'; }
}  // namespace

std::string figure_or_blank(std::uint64_t count) { return count ? human_count(count) : ""; }

Page::Page(const Terminal& terminal, unsigned max_width)
    : width_(std::clamp(terminal.width, MIN_WIDTH, max_width)),
      max_width_(max_width),
      color_(terminal.color) {}

void Page::line(std::string_view text) { painted(printable(text)); }

void Page::leave_out(std::string_view column) {
  if (!column.empty() && std::find(left_out_.begin(), left_out_.end(), column) == left_out_.end())
    left_out_.emplace_back(column);
}

void Page::say_left_out() {
  if (left_out_.empty()) return;
  std::string text = "left out for want of room:";
  for (const std::string& column : left_out_)
    text += (&column == &left_out_.front() ? " " : ", ") + column;
  if (width_ < max_width_)
    text += fmt::format("; a wider terminal or COLUMNS={} shows more, --json all", max_width_);
  else
    text += "; --json has all";
  blank();
  paragraph(text, 2);
  left_out_.clear();
}

std::size_t Page::name_width() const {
  std::size_t others = 2 + columns_ * COLUMN;
  return std::max(MIN_NAME, width_ > others ? width_ - others : 0);
}

void Page::heading(std::string_view name, std::span<const std::string_view> columns) {
  columns_ = columns.size();
  std::size_t room = columns_ ? name_width() + 2 : width_;
  std::string text = shortened(printable(name), room);
  if (columns_) text += std::string(room - width_of(text), ' ');
  for (auto column : columns) text += fmt::format("{:>{}}", column, COLUMN);
  painted(color_ ? fmt::format("\033[1m{}\033[0m", text) : text);
}

void Page::row(const std::string& name, std::span<const std::string> figures) {
  std::string text = "  " + shortened(name, name_width() - 1);
  text += std::string(2 + name_width() - width_of(text), ' ');
  for (const auto& figure : figures) text += fmt::format("{:>{}}", figure, COLUMN);
  line(text);
}

void Page::term(std::string_view word, std::string_view text) {
  std::size_t begin = text_.size();
  paragraph(text, TERM);
  text_.replace(begin, TERM, fmt::format("  {:<{}}", word, TERM - 2));
}

void Page::statement(std::string_view title, std::string_view text) {
  std::size_t begin = text_.size();
  std::string name = printable(title);
  paragraph(fmt::format("{}: {}", name, text), 0);
  if (color_) text_.replace(begin, name.size(), fmt::format("\033[1m{}\033[0m", name));
}

void Page::paragraph(std::string_view text, std::size_t indent) {
  while (!text.empty()) {
    std::size_t fitting = bytes_of(text, width_ - indent), size = fitting;
    if (size < text.size()) {
      size = text.rfind(' ', fitting);
      while (size != std::string_view::npos && size && is_digit(text[size - 1]))  // "3 ms"
        size = text.rfind(' ', size - 1);
      if (size == std::string_view::npos) size = fitting;
    }
    line(std::string(indent, ' ') + std::string(text.substr(0, size)));
    text.remove_prefix(size);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
}

}  // namespace cudabpf
