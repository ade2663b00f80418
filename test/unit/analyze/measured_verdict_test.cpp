// The verdict of traces with GPUs' own times.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/summary/summary.hpp"
#include "support/sample_program.hpp"
#include "support/trace_text.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Execution {
  std::uint64_t pause = 0;    // between launches
  std::uint64_t kernel = 0;   // on the GPU
  std::uint64_t copy = 0;     // on the GPU, after the kernels
  std::uint64_t spacing = 0;  // from one's end to the next
  std::uint64_t others = 0;   // in another call
};

// Ten iterations of four kernels and a wait, on a GPU that does one thing after the other.
std::string text_of(const Execution& execution) {
  SampleProgram program, operations;
  std::uint64_t free = 0;
  auto ran = [&](std::string_view op, std::string_view more, std::uint64_t issued,
                 std::uint64_t ns) {
    std::uint64_t begin = std::max(issued + 3 * US, free + execution.spacing);
    free = begin + ns;
    operations.line(fmt::format(
        R"({{"type":"gpu","op":"{}","ts":{},"duration_us":{}.000,"pid":7,"call":{},"stream":"0x0","queue":1,"device":0,{}}})",
        op, begin, ns / 1000, program.calls(), more));
  };
  for (int i = 0; i < 10; i++) {
    for (auto kernel : {"a", "b", "c", "d"}) {
      std::uint64_t issued = program.now;
      program.launch(kernel, 2 * US);
      ran("kernel", fmt::format(R"("kernel":"{}")", kernel), issued, execution.kernel);
      program.pause(execution.pause);
    }
    if (execution.others) program.call("event", "record", "cuEventRecord", execution.others);
    if (execution.copy) {
      std::uint64_t issued = program.now;
      program.call("transfer", "HtoD", "cuMemcpyHtoDAsync", 2 * US,
                   R"(,"size":4096,"async":true,"stream":"0x0")");
      ran("copy", R"("direction":"HtoD")", issued, execution.copy);
    }
    program.wait(std::max(2 * US, free + 2 * US - std::min(free, program.now)));
  }
  return program.text() + operations.text();
}

Json summary_of(const Execution& execution, const std::string& counts = "") {
  TraceText trace(text_of(execution), R"(,"gpu_timing":"nodes")",
                  R"({"type":"end","ts":9000000,"duration_ns":9000000)" + counts + "}\n");
  Summary summary(trace.names(), {});
  trace.show(summary);
  return summary.json()["summary"];
}

Json first_of(const Execution& execution) { return summary_of(execution)["verdict"][0]; }

}  // namespace

TEST_CASE("A GPU that is measured to be busy bounds the program") {
  Json first = first_of({.kernel = 50 * US});
  CHECK(first["id"] == "gpu_bound");
  CHECK(first["sure"] == "known");
  CHECK_THAT(first["text"].get<std::string>(), ContainsSubstring("GPU 0 was busy for 9") &&
                                                   ContainsSubstring(", measured; a took most"));
  CHECK(first["figures"]["gpu_busy_share"].get<double>() > 90);
}

TEST_CASE("A host that issues late is measured, whether it waits or not") {
  Json first = first_of({.pause = 30 * US, .kernel = 5 * US});
  CHECK(first["id"] == "host_bound");
  CHECK(first["sure"] == "known");
  CHECK_THAT(first["text"].get<std::string>(),
             ContainsSubstring("(measured): host between CUDA calls 7"));
  CHECK(first["figures"]["gpu_idle_by_host_share"].get<double>() > 50);
  CHECK(first["calls"].size() > 1);
}

TEST_CASE("Fewer launches are not recommended where other calls take the host's time") {
  Json first = first_of({.kernel = 5 * US, .others = 300 * US});
  CHECK(first["id"] == "host_bound");
  CHECK_THAT(first["text"].get<std::string>(),
             ContainsSubstring("Reducing launches alone will not help: launching takes 2."));
}

TEST_CASE("Copies bound a program in which nothing else runs meanwhile") {
  Json summary = summary_of({.kernel = 5 * US, .copy = 200 * US});
  CHECK(summary["verdict"][0]["id"] == "copies");
  CHECK_THAT(summary["verdict"][0]["text"].get<std::string>(),
             ContainsSubstring("with copies and fills alone, measured"));
  CHECK(summary["measured"]["work"]["each_iteration"]["busy_p50_us"] == 220.0);
}

TEST_CASE("A GPU may be idle though work was issued in time") {
  Json first = first_of({.kernel = 6 * US, .spacing = 8 * US});
  CHECK(first["id"] == "gpu_waits");
}

TEST_CASE("If much of what GPUs did is missing, waits are judged by as before") {
  Json summary = summary_of(
      {.kernel = 50 * US},
      R"(,"gpu_operations":{"operations":20,"joined":20,"calls":40,"answered":20,"unjoined":{"not_reported":20}})");
  CHECK_FALSE(summary["verdict"][0]["figures"].contains("gpu_busy_share"));
  CHECK(summary["measured"]["work"]["judged"] == false);
}
