// Headings and paragraphs for a terminal. Tables are in util/page/table.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/console/terminal.hpp"
#include "util/text/moments.hpp"
#include "util/text/printable.hpp"

namespace cudabpf {

class Page {
 public:
  static constexpr unsigned MIN_WIDTH = 40, MAX_WIDTH = 110;

  explicit Page(const Terminal& terminal, unsigned max_width = MAX_WIDTH);

  // All functions but painted() make their text printable. Blanks at a line's end are dropped.
  void line(std::string_view text);
  // Lines with colours; the caller has made all foreign text in them printable.
  void painted(std::string_view text) {
    (text_ += text.substr(0, text.find_last_not_of(' ') + 1)) += '\n';
  }
  // The text of another page.
  void painted_lines(std::string_view text) { text_ += text; }
  void blank() { text_ += '\n'; }
  // On as many lines as needed, but not on a screenful.
  void heading(std::string_view name);
  // Text broken between words, each line indented by `indent` blanks.
  void paragraph(std::string_view text, std::size_t indent);
  // A paragraph after a word that names its subject; below it, if there is not much room.
  void term(std::string_view word, std::string_view text);
  // A paragraph whose first line has this instead of its indent. It takes as much room, and may
  // have colours; the caller has made it printable.
  void hanging(std::string_view begin, std::string_view text, std::size_t indent);

  // A paragraph that begins with its conclusion: "Host-bound: …".
  void statement(std::string_view title, std::string_view text);

  // A table had no room for this column.
  void leave_out(std::string_view column);
  // Says which columns were left out and how to see them; false: none was.
  bool say_left_out(bool has_json = true);

  // How moments are shown: by default, by the time since the beginning.
  void show_moments(const Moments& moments) { moments_ = moments; }
  const Moments& moments() const { return moments_; }
  std::string at(std::uint64_t ns) const { return moments_.at(ns); }

  unsigned width() const { return width_; }
  unsigned height() const { return height_; }  // of the terminal; 0: there is none
  bool color() const { return color_; }
  bool empty() const { return text_.empty(); }
  std::size_t lines() const {
    return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
  }
  // The end of the text, and a way back to it: drops what was added since.
  std::size_t size() const { return text_.size(); }
  void cut(std::size_t size) { text_.resize(size); }
  std::string take() { return std::move(text_); }

 private:
  unsigned width_, max_width_, height_;
  bool color_;
  Moments moments_;
  std::string text_;
  std::vector<std::string> left_out_;  // names of columns, in the order in which they were left out
};

std::string figure_or_blank(std::uint64_t count);

}  // namespace cudabpf
