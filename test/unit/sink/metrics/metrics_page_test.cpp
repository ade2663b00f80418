#include "sink/metrics/metrics_page.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <sstream>

#include "sink/metrics/metrics_text.hpp"

using namespace cudabpf;
using Catch::Matchers::ContainsSubstring;

namespace {

WorkloadSums workload(const std::string& program) {
  WorkloadSums sums;
  sums.workload.program = program;
  sums.classes[0].calls = 1;
  return sums;
}

// Each family is announced once, before its samples, which stand together.
void check_families(const std::string& page) {
  std::istringstream lines(page);
  std::set<std::string> families, samples;
  std::string family, line;
  while (std::getline(lines, line)) {
    INFO(line);
    REQUIRE_FALSE(line.empty());
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families.insert(family).second);
    } else if (line.starts_with("# TYPE ")) {
      CHECK(line.substr(7, line.find(' ', 7) - 7) == family);
    } else {
      CHECK(line.starts_with(family));
      CHECK(samples.insert(line.substr(0, line.rfind(' '))).second);
    }
  }
}

}  // namespace

TEST_CASE("Metrics are text that no name can break") {
  MetricsText text;
  text.family("m_total", MetricType::counter, "Help.");
  text.sample({{"a", "x\"y\\z\nw"}, {"b", ""}}, std::uint64_t{7});
  text.sample({}, 0.5);
  CHECK(text.take() ==
        "# HELP m_total Help.\n# TYPE m_total counter\nm_total{a=\"x\\\"y\\\\z\\nw\",b=\"\"} 7\n"
        "m_total 0.5\n");
}

TEST_CASE("A page has each series once") {
  LedgerPage page;
  page.workloads = {workload("a"),
                    workload("b\n\"c\\"),
                    workload("\xff"),
                    workload("\xfe"),
                    workload(std::string(200, 'x') + "1"),
                    workload(std::string(200, 'x') + "2")};
  page.workloads[0].classes[0].times.add(5'000'000);
  page.workloads[0].errors[{ApiId::cuda, 2}] = 3;
  page.workloads[0].errors[{ApiId::cuda, 12345}] = 1;
  page.workloads[0].oldest_open_ns = 1'500'000'000;
  page.xids[{79, "0000:1a:00"}] = 1;
  page.driver_traced = page.open_calls_known = true;
  page.workloads[0].errors[{ApiId::nccl, 12345}] = 1;  // of another library, and as nameless
  page.workloads[0].errors[{ApiId::cuda, -1}] = 4;
  LedgerGpu gpu;
  gpu.gpu.uuid = "GPU-1";
  gpu.gpu.name = "H200";
  gpu.latest.power_w = 123.5;
  gpu.latest.sm_active = 50;
  gpu.latest.energy_j = 7;
  page.gpus = {gpu};
  MetricsText printed;
  print({page, {.version = "1.2", .cpu_seconds = 0.25, .start_ns = 1'500'000'000}}, printed);
  std::string text = printed.take();
  check_families(text);
  for (const char* line :
       {"cudabpf_calls_total{namespace=\"\",pod=\"\",container=\"\",program=\"a\",function_class="
        "\"launch\"} 1\n",
        "cudabpf_calls_total{namespace=\"\",pod=\"\",container=\"\",program=\"b\\n\\\"c\\\\\","
        "function_class=\"launch\"} 1\n",
        "cudabpf_call_seconds_bucket{namespace=\"\",pod=\"\",container=\"\",program=\"a\",function_"
        "class=\"launch\",le=\"1e-06\"} 0\n",
        "cudabpf_call_seconds_bucket{namespace=\"\",pod=\"\",container=\"\",program=\"a\",function_"
        "class=\"launch\",le=\"0.016384\"} 1\n",
        "cudabpf_call_seconds_bucket{namespace=\"\",pod=\"\",container=\"\",program=\"a\",function_"
        "class=\"launch\",le=\"+Inf\"} 1\n",
        "cudabpf_call_seconds_sum{namespace=\"\",pod=\"\",container=\"\",program=\"a\",function_"
        "class=\"launch\"} 0.005\n",
        "cudabpf_call_errors_total{namespace=\"\",pod=\"\",container=\"\",program=\"a\",result="
        "\"CUDA_ERROR_OUT_OF_MEMORY\"} 3\n",
        "cudabpf_call_errors_total{namespace=\"\",pod=\"\",container=\"\",program=\"a\",result="
        "\"12345\"} 2\n",
        "cudabpf_call_errors_total{namespace=\"\",pod=\"\",container=\"\",program=\"a\",result=\"("
        "other)\"} 4\n",
        "cudabpf_open_call_seconds{namespace=\"\",pod=\"\",container=\"\",program=\"a\"} 1.5\n",
        "cudabpf_ioctls_total{namespace=\"\",pod=\"\",container=\"\",program=\"a\"} 0\n",
        "cudabpf_gpu_xid_errors_total{xid=\"79\",pci_bus_id=\"0000:1a:00\"} 1\n",
        "cudabpf_gpu_power_watts{gpu=\"0\",gpu_uuid=\"GPU-1\",model=\"H200\"} 123.5\n",
        "cudabpf_gpu_sm_active_ratio{gpu=\"0\",gpu_uuid=\"GPU-1\",model=\"H200\"} 0.5\n",
        "cudabpf_gpu_energy_joules_total{gpu=\"0\",gpu_uuid=\"GPU-1\",model=\"H200\"} 7\n",
        "cudabpf_lost_events_total{reason=\"tally_full\",severity=\"lost\"} 0\n",
        "cudabpf_build_info{version=\"1.2\"} 1\n", "process_cpu_seconds_total 0.25\n",
        "process_start_time_seconds 1.5\n"})
    CHECK_THAT(text, ContainsSubstring(line));
  CHECK(text.find("temperature") == text.npos);  // what a GPU does not report
  CHECK(text.find("push") == text.npos);
}

TEST_CASE("A page that is also pushed says what became of that") {
  push::Counts counts;
  counts.pushes[static_cast<std::size_t>(push::Outcome::partly)] = 4;
  counts.rejected = 9;
  MetricsText printed;
  print({{}, {}, counts}, printed);
  std::string text = printed.take();
  check_families(text);
  for (const char* line :
       {"cudabpf_pushes_total{outcome=\"accepted\"} 0\n",
        "cudabpf_pushes_total{outcome=\"partly\"} 4\n", "cudabpf_push_rejected_samples_total 9\n"})
    CHECK_THAT(text, ContainsSubstring(line));
}
