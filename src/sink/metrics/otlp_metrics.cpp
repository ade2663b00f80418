#include "sink/metrics/otlp_metrics.hpp"

#include <array>
#include <bit>
#include <limits>

namespace cudabpf {

namespace {

// The fields' numbers, by message, as opentelemetry-proto has them.
namespace otlp {
constexpr std::uint32_t REQUEST_RESOURCE_METRICS = 1;
constexpr std::uint32_t RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPE_METRICS = 2;
constexpr std::uint32_t RESOURCE_ATTRIBUTES = 1;
constexpr std::uint32_t SCOPE_METRICS_SCOPE = 1, SCOPE_METRICS_METRICS = 2;
constexpr std::uint32_t SCOPE_NAME = 1, SCOPE_VERSION = 2;
constexpr std::uint32_t METRIC_NAME = 1, METRIC_DESCRIPTION = 2;
constexpr std::uint32_t METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9;
constexpr std::uint32_t DATA_POINTS = 1, DATA_TEMPORALITY = 2, SUM_IS_MONOTONIC = 3;
constexpr std::uint32_t CUMULATIVE = 2;  // a temporality
constexpr std::uint32_t POINT_START = 2, POINT_TIME = 3;
constexpr std::uint32_t NUMBER_AS_DOUBLE = 4, NUMBER_AS_INT = 6, NUMBER_ATTRIBUTES = 7;
constexpr std::uint32_t HISTOGRAM_COUNT = 4, HISTOGRAM_SUM = 5, HISTOGRAM_COUNTS = 6;
constexpr std::uint32_t HISTOGRAM_BOUNDS = 7, HISTOGRAM_ATTRIBUTES = 9;
constexpr std::uint32_t ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, VALUE_STRING = 1;
}  // namespace otlp

constexpr double NS_OF_A_SECOND = 1e9;

void add_attribute(ProtobufMessage& to, std::uint32_t field, std::string_view key,
                   std::string_view text) {
  ProtobufMessage value, one;
  value.text(otlp::VALUE_STRING, text);
  one.text(otlp::ATTRIBUTE_KEY, key);
  one.message(otlp::ATTRIBUTE_VALUE, value);
  to.message(field, one);
}

// In seconds, as bits.
std::array<std::uint64_t, TIME_LIMITS> bounds() {
  std::array<std::uint64_t, TIME_LIMITS> bounds{};
  for (std::size_t i = 0; i < TIME_LIMITS; i++)
    bounds[i] =
        std::bit_cast<std::uint64_t>(static_cast<double>(TIME_LIMITS_NS[i]) / NS_OF_A_SECOND);
  return bounds;
}

}  // namespace

OtlpMetrics::OtlpMetrics(OtlpSource source) : source_(std::move(source)) {
  ProtobufMessage scope;
  scope.text(otlp::SCOPE_NAME, "cudabpf");
  scope.text(otlp::SCOPE_VERSION, source_.version);
  metrics_.message(otlp::SCOPE_METRICS_SCOPE, scope);
}

void OtlpMetrics::family(std::string_view name, MetricType type, std::string_view help) {
  end_family();
  name_ = name;
  help_ = help;
  type_ = type;
}

// One without points is left out: a receiver would complain.
void OtlpMetrics::end_family() {
  if (points_.empty()) return;
  ProtobufMessage one;
  one.text(otlp::METRIC_NAME, name_);
  one.text(otlp::METRIC_DESCRIPTION, help_);
  bool is_gauge = type_ == MetricType::gauge, is_histogram = type_ == MetricType::histogram;
  if (!is_gauge) points_.number(otlp::DATA_TEMPORALITY, otlp::CUMULATIVE);
  if (!is_gauge && !is_histogram) points_.number(otlp::SUM_IS_MONOTONIC, 1);
  one.message(is_gauge       ? otlp::METRIC_GAUGE
              : is_histogram ? otlp::METRIC_HISTOGRAM
                             : otlp::METRIC_SUM,
              points_);
  metrics_.message(otlp::SCOPE_METRICS_METRICS, one);
  points_.clear();
}

// A label without a value is none.
ProtobufMessage OtlpMetrics::point(std::uint32_t attributes, const Labels& labels) const {
  ProtobufMessage made;
  if (type_ == MetricType::counter || type_ == MetricType::histogram)
    made.fixed64(otlp::POINT_START, source_.start_ns);
  made.fixed64(otlp::POINT_TIME, source_.now_ns);
  for (const auto& [name, value] : labels)
    if (!value.empty()) add_attribute(made, attributes, name, value);
  return made;
}

void OtlpMetrics::sample(const Labels& labels, std::uint64_t value) {
  if (value > std::numeric_limits<std::int64_t>::max())
    return sample(labels, static_cast<double>(value));
  ProtobufMessage made = point(otlp::NUMBER_ATTRIBUTES, labels);
  made.fixed64(otlp::NUMBER_AS_INT, value);
  points_.message(otlp::DATA_POINTS, made);
}

void OtlpMetrics::sample(const Labels& labels, double value) {
  ProtobufMessage made = point(otlp::NUMBER_ATTRIBUTES, labels);
  made.real(otlp::NUMBER_AS_DOUBLE, value);
  points_.message(otlp::DATA_POINTS, made);
}

void OtlpMetrics::histogram(const Labels& labels, const Times& times) {
  static const std::array<std::uint64_t, TIME_LIMITS> BOUNDS = bounds();
  std::uint64_t calls = 0;
  for (std::uint64_t count : times.calls) calls += count;
  ProtobufMessage made = point(otlp::HISTOGRAM_ATTRIBUTES, labels);
  made.fixed64(otlp::HISTOGRAM_COUNT, calls);
  made.real(otlp::HISTOGRAM_SUM, static_cast<double>(times.time_ns) / NS_OF_A_SECOND);
  made.all_fixed64(otlp::HISTOGRAM_COUNTS, times.calls);
  made.all_fixed64(otlp::HISTOGRAM_BOUNDS, BOUNDS);
  points_.message(otlp::DATA_POINTS, made);
}

std::string OtlpMetrics::take() {
  end_family();
  constexpr const char* NAME = "cudabpf";
  ProtobufMessage resource, of_resource, request;
  auto add = [&resource](std::string_view key, std::string_view text) {
    add_attribute(resource, otlp::RESOURCE_ATTRIBUTES, key, text);
  };
  add("service.name", NAME);
  add("service.version", source_.version);
  add("service.instance.id", source_.instance);
  add("host.name", source_.host);
  // Prometheus makes these labels of the above. VictoriaMetrics does not, and takes all attributes
  // for labels: so dashboards find the same there.
  add("job", NAME);
  add("instance", source_.instance);
  of_resource.message(otlp::RESOURCE_METRICS_RESOURCE, resource);
  of_resource.message(otlp::RESOURCE_METRICS_SCOPE_METRICS, metrics_);
  request.message(otlp::REQUEST_RESOURCE_METRICS, of_resource);
  return std::string(request.bytes());
}

}  // namespace cudabpf
