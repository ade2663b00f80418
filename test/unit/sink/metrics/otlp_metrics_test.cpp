#include "sink/metrics/otlp_metrics.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "sink/metrics/metrics_page.hpp"
#include "util/protobuf.hpp"

using namespace cudabpf;

namespace {

using Field = ProtobufReader::Field;

// All fields at a path of numbers.
std::vector<Field> fields(std::string_view message, std::vector<std::uint32_t> path) {
  std::vector<Field> found;
  ProtobufReader reader(message);
  while (auto field = reader.next()) {
    if (field->number != path.front()) continue;
    if (path.size() == 1) {
      found.push_back(*field);
      continue;
    }
    for (const Field& inner : fields(field->text, {path.begin() + 1, path.end()}))
      found.push_back(inner);
  }
  return found;
}

Field one(std::string_view message, const std::vector<std::uint32_t>& path) {
  auto found = fields(message, path);
  REQUIRE(found.size() == 1);
  return found[0];
}

std::string text(std::string_view message, const std::vector<std::uint32_t>& path) {
  return std::string(one(message, path).text);
}

double real(const Field& field) { return std::bit_cast<double>(field.value); }

// "key=value,…"
std::string attributes(std::string_view message, std::uint32_t field) {
  std::string all;
  for (const Field& attribute : fields(message, {field}))
    all += text(attribute.text, {1}) + "=" + text(attribute.text, {2, 1}) + ",";
  return all;
}

std::vector<std::uint64_t> packed(std::string_view text) {
  std::vector<std::uint64_t> numbers(text.size() / sizeof(std::uint64_t));
  text.copy(reinterpret_cast<char*>(numbers.data()), text.size());
  return numbers;
}

OtlpSource source() {
  return {.version = "1.2", .host = "node", .instance = "node:8078", .start_ns = 5, .now_ns = 9};
}

// The metrics of a request with one scope.
std::vector<Field> metrics_in(std::string_view request) { return fields(request, {1, 2, 2}); }

}  // namespace

TEST_CASE("A request of OTLP says whose metrics it has") {
  OtlpMetrics otlp(source());
  otlp.family("m", MetricType::gauge, "Help.");
  otlp.sample({}, 0.5);
  std::string request = otlp.take();
  CHECK(attributes(one(request, {1, 1}).text, 1) ==
        "service.name=cudabpf,service.version=1.2,service.instance.id=node:8078,host.name=node,"
        "job=cudabpf,instance=node:8078,");
  CHECK(text(request, {1, 2, 1, 1}) == "cudabpf");
  CHECK(text(request, {1, 2, 1, 2}) == "1.2");
}

TEST_CASE("Counters are sums since the beginning, gauges are values of now") {
  OtlpMetrics otlp(source());
  otlp.family("calls_total", MetricType::counter, "Calls.");
  otlp.sample({{"program", "a\"b"}, {"pod", ""}}, std::uint64_t{7});
  otlp.sample({}, std::numeric_limits<std::uint64_t>::max());
  otlp.family("nothing_total", MetricType::counter, "No samples.");
  otlp.family("held", MetricType::gauge, "Memory.");
  otlp.sample({{"x", "y"}}, 0.5);
  std::string message = otlp.take();
  auto metrics = metrics_in(message);
  REQUIRE(metrics.size() == 2);  // none without samples

  std::string_view calls = metrics[0].text;
  CHECK(text(calls, {1}) == "calls_total");
  CHECK(text(calls, {2}) == "Calls.");
  CHECK(fields(calls, {3}).empty());     // a unit would change its name
  CHECK(one(calls, {7, 2}).value == 2);  // cumulative
  CHECK(one(calls, {7, 3}).value == 1);  // monotonic
  auto points = fields(calls, {7, 1});
  REQUIRE(points.size() == 2);
  CHECK(attributes(points[0].text, 7) == "program=a\"b,");
  CHECK(one(points[0].text, {2}).value == 5);
  CHECK(one(points[0].text, {3}).value == 9);
  CHECK(one(points[0].text, {6}).value == 7);
  CHECK(fields(points[1].text, {6}).empty());  // it would be negative
  CHECK(real(one(points[1].text, {4})) == 18446744073709551615.0);

  std::string_view held = metrics[1].text;
  CHECK(fields(held, {5, 2}).empty());
  CHECK(real(one(held, {5, 1, 4})) == 0.5);
  CHECK(one(held, {5, 1, 3}).value == 9);
  CHECK(fields(held, {5, 1, 2}).empty());
}

TEST_CASE("Histograms have their bounds, and as many counts and one more") {
  Times times;
  times.add(1000);  // a bound belongs to what is below it
  times.add(1001);
  times.add(3'600'000'000'000);
  OtlpMetrics otlp(source());
  otlp.family("seconds", MetricType::histogram, "Times.");
  otlp.histogram({{"program", "a"}}, times);
  std::string message = otlp.take();
  auto metrics = metrics_in(message);
  REQUIRE(metrics.size() == 1);
  CHECK(one(metrics[0].text, {9, 2}).value == 2);
  CHECK(fields(metrics[0].text, {9, 3}).empty());
  std::string_view point = one(metrics[0].text, {9, 1}).text;
  CHECK(attributes(point, 9) == "program=a,");
  CHECK(one(point, {4}).value == 3);
  CHECK(real(one(point, {5})) == 3600.000002001);
  auto counts = packed(one(point, {6}).text), bounds = packed(one(point, {7}).text);
  REQUIRE(counts.size() == TIME_LIMITS + 1);
  REQUIRE(bounds.size() == TIME_LIMITS);
  CHECK((counts[0] == 1 && counts[1] == 1 && counts[TIME_LIMITS] == 1));
  CHECK(std::bit_cast<double>(bounds[0]) == 1e-6);
  CHECK(std::bit_cast<double>(bounds[1]) == 4e-6);
}

// A receiver that translates to Prometheus' names appends "_total" to sums that only grow, and
// "_ratio" to gauges without a unit of their own.
TEST_CASE("Names are such that no receiver changes them") {
  MetricsPage page;
  page.own.version = "1.2";
  page.sums.node.classes[0].calls = 1;
  OtlpMetrics otlp(source());
  print(page, otlp);
  std::string message = otlp.take();
  auto metrics = metrics_in(message);
  CHECK(metrics.size() > 5);
  for (const Field& metric : metrics) {
    std::string name = text(metric.text, {1});
    INFO(name);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == name.npos);
    CHECK(name.find("__") == name.npos);
    CHECK(name.ends_with("_total") == !fields(metric.text, {7}).empty());
  }
}
