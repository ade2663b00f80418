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

enum class MetricType : std::uint8_t {
  counter,
  others_counter,  // that began with another program, nobody knows when
  gauge,
  histogram
};

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

}  // namespace cudabpf
