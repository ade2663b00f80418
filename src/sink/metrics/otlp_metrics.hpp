// OpenTelemetry's protocol for metrics, OTLP, as a receiver takes it by HTTP: an
// ExportMetricsServiceRequest of opentelemetry-proto 1.x. Names and labels are those of the text
// format, and no metric has a unit: a receiver that translates names to Prometheus' would add it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sink/metrics/metrics_writer.hpp"
#include "util/protobuf.hpp"

namespace cudabpf {

// Whose metrics they are.
struct OtlpSource {
  std::string version;   // of cudabpf
  std::string host;      // its name
  std::string instance;  // what distinguishes it from others: HOST:PORT
  std::uint64_t start_ns = 0,
                now_ns = 0;  // CLOCK_REALTIME: counters are from the first to the second
};

class OtlpMetrics final : public MetricsWriter {
 public:
  explicit OtlpMetrics(OtlpSource source);

  void family(std::string_view name, MetricType type, std::string_view help) override;
  void sample(const Labels& labels, std::uint64_t value) override;
  void sample(const Labels& labels, double value) override;
  void histogram(const Labels& labels, const Times& times) override;

  // The request's bytes.
  std::string take();

  static constexpr const char* CONTENT_TYPE = "application/x-protobuf";

 private:
  ProtobufMessage point(std::uint32_t attributes, const Labels& labels) const;
  void end_family();

  OtlpSource source_;
  ProtobufMessage metrics_;  // a ScopeMetrics, up to the family before
  std::string name_, help_;
  MetricType type_ = MetricType::gauge;
  ProtobufMessage points_;  // of the family
};

}  // namespace cudabpf
