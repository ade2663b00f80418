// Prometheus' text format, version 0.0.4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sink/metrics/metrics_writer.hpp"

namespace cudabpf {

class MetricsText final : public MetricsWriter {
 public:
  void family(std::string_view name, MetricType type, std::string_view help) override;
  void sample(const Labels& labels, std::uint64_t value) override { sample("", labels, value); }
  void sample(const Labels& labels, double value) override { sample("", labels, value); }
  void histogram(const Labels& labels, const Times& times) override;

  std::string take() { return std::move(text_); }

  static constexpr const char* CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

 private:
  // With a suffix, as a histogram's samples have: "_bucket", "_sum", "_count".
  void sample(std::string_view suffix, const Labels& labels, std::uint64_t value);
  void sample(std::string_view suffix, const Labels& labels, double value);
  void name_and_labels(std::string_view suffix, const Labels& labels);

  std::string text_, name_;
};

}  // namespace cudabpf
