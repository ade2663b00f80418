// What metrics are printed with: families of samples, each with its labels. The page says what
// there is, and a writer in which format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudabpf/tally.hpp"

namespace cudabpf {

enum class MetricType : std::uint8_t { counter, gauge, histogram };

class MetricsWriter {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // What follows, until the next family, are samples of it. The names of counters end in "_total":
  // a receiver of OTLP would add that.
  virtual void family(std::string_view name, MetricType type, std::string_view help) = 0;
  virtual void sample(const Labels& labels, std::uint64_t value) = 0;
  virtual void sample(const Labels& labels, double value) = 0;
  virtual void histogram(const Labels& labels, const Times& times) = 0;

 protected:
  ~MetricsWriter() = default;
};

// As much of a foreign text as a label's value may have: valid UTF-8 of at most this many bytes.
// What is not UTF-8 becomes U+FFFD.
inline constexpr std::size_t MAX_LABEL_BYTES = 128;
std::string label_value(std::string_view text);

}  // namespace cudabpf
