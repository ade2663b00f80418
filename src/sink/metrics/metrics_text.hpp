// Prometheus' text format, version 0.0.4: families of samples, each with its labels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf {

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // What follows, until the next family, are samples of it. `type`: counter, gauge, histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(const Labels& labels, std::uint64_t value) { sample("", labels, value); }
  void sample(const Labels& labels, double value);
  // With a suffix, as a histogram's samples have: "_bucket", "_sum", "_count".
  void sample(std::string_view suffix, const Labels& labels, std::uint64_t value);
  void sample(std::string_view suffix, const Labels& labels, double value);

  std::string take() { return std::move(text_); }

  static constexpr const char* CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

 private:
  void name_and_labels(std::string_view suffix, const Labels& labels);

  std::string text_, name_;
};

// As much of a foreign text as a label's value may have: valid UTF-8 of at most this many bytes.
// What is not UTF-8 becomes U+FFFD.
inline constexpr std::size_t MAX_LABEL_BYTES = 128;
std::string label_value(std::string_view text);

}  // namespace cudabpf
