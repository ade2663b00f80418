#include "analyze/report/report_words.hpp"

#include <fmt/format.h>

#include <iterator>

#include "analyze/export/line_details.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t MAX_VALUE = 1024;

// Appends names and values to a text.
class DetailText {
 public:
  DetailText(std::string& text, const Names& names) : text_(text), names_(names) {}

  void name(Detail detail, Name name) { text(detail, names_.text(name)); }
  void text(Detail detail, std::string_view value) {
    if (detail == Detail::kernel || detail == Detail::error || detail == Detail::state) return;
    text(DETAILS[static_cast<std::size_t>(detail)], value);
  }
  void text(std::string_view key, std::string_view value) {
    begin(key);
    text_ += short_text(value, MAX_VALUE);
  }
  template <typename Integer>
  void number(Detail detail, Integer value) {
    // Those have columns of their own.
    if (detail == Detail::id || detail == Detail::call) return;
    begin(DETAILS[static_cast<std::size_t>(detail)]);
    fmt::format_to(std::back_inserter(text_), FMT_STRING("{}"), value);
  }
  void address(Detail detail, std::uint64_t address) {
    begin(DETAILS[static_cast<std::size_t>(detail)]);
    fmt::format_to(std::back_inserter(text_), FMT_STRING("{:#x}"), address);
  }
  void dimensions(Detail detail, const Dimensions& sizes) {
    begin(DETAILS[static_cast<std::size_t>(detail)]);
    fmt::format_to(std::back_inserter(text_), FMT_STRING("{} × {} × {}"), sizes[0], sizes[1],
                   sizes[2]);
  }

 private:
  void begin(std::string_view key) {
    if (!text_.empty()) text_ += '\x1e';
    text_ += key;
    text_ += '\x1f';
  }

  std::string& text_;
  const Names& names_;
};

}  // namespace

std::string short_text(std::string_view text, std::size_t most) {
  if (text.size() <= most) return printable(text);
  std::size_t end = most;
  while (end && (text[end] & 0xc0) == 0x80) end--;
  return printable(text.substr(0, end)) + "…";
}

std::uint32_t EventDetails::of(const Line& line, const Names& names) {
  text_.clear();
  DetailText out(text_, names);
  details_of(line, names, {}, {}, out);
  if (!line.args.empty()) out.text("arguments", line.args);
  if (line.symbol && line.symbol != line.name) out.text("symbol", names.text(line.symbol));
  if (text_.empty()) return NONE;
  auto known = numbers_.find(text_);
  if (known != numbers_.end()) return known->second;
  if (texts_.size() == MAX || bytes_ + text_.size() > MAX_BYTES) {
    full_ = true;
    return NOT_KEPT;
  }
  bytes_ += text_.size();
  auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(numbers_.emplace(text_, number).first->first);
  return number;
}

}  // namespace cudabpf::analyze
