#include "sink/metrics/metrics_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

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

std::string_view to_string(MetricType type) {
  switch (type) {
    case MetricType::counter:
    case MetricType::others_counter:
      return "counter";
    case MetricType::gauge:
      return "gauge";
    case MetricType::histogram:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

void MetricsText::family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help,
                 to_string(type));
}

void MetricsText::histogram(const Labels& labels, const Times& times) {
  constexpr double SECOND_NS = 1e9;
  std::uint64_t calls = 0;
  Labels with_limit = labels;
  std::string& limit = with_limit.emplace_back("le", "").second;
  for (std::size_t i = 0; i <= TIME_LIMITS; i++) {
    calls += times.calls[i];
    limit = i < TIME_LIMITS ? fmt::format("{}", static_cast<double>(TIME_LIMITS_NS[i]) / SECOND_NS)
                            : "+Inf";
    sample("_bucket", with_limit, calls);
  }
  sample("_sum", labels, static_cast<double>(times.time_ns) / SECOND_NS);
  sample("_count", labels, calls);
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
