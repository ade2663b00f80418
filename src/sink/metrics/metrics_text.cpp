#include "sink/metrics/metrics_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

void add_escaped(std::string& to, std::string_view value) {
  for (char c : value) {
    if (c == '\\' || c == '"') to += '\\';
    if (c == '\n')
      to += "\\n";
    else
      to += c;
  }
}

}  // namespace

std::string label_value(std::string_view text) {
  constexpr std::string_view REPLACEMENT = "\xef\xbf\xbd";
  std::string value;
  while (!text.empty()) {
    std::size_t size = first_character(text).size;
    std::string_view next = size ? text.substr(0, size) : REPLACEMENT;
    if (value.size() + next.size() > MAX_LABEL_BYTES) break;
    value += next;
    text.remove_prefix(size ? size : 1);
  }
  return value;
}

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

void MetricsText::name_and_labels(std::string_view suffix, const Labels& labels) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, value] : labels) {
    text_ += before;
    text_ += label;
    text_ += "=\"";
    add_escaped(text_, value);
    text_ += '"';
    before = ',';
  }
  if (before == ',') text_ += '}';
}

void MetricsText::sample(std::string_view suffix, const Labels& labels, std::uint64_t value) {
  name_and_labels(suffix, labels);
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

void MetricsText::sample(const Labels& labels, double value) { sample("", labels, value); }

void MetricsText::sample(std::string_view suffix, const Labels& labels, double value) {
  name_and_labels(suffix, labels);
  if (std::isnan(value))
    text_ += " NaN\n";
  else if (std::isinf(value))
    text_ += value > 0 ? " +Inf\n" : " -Inf\n";
  else
    fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

}  // namespace cudabpf
