// The verdict of traces with GPUs' own times.
#include <algorithm>
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

constexpr std::string_view ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)";

struct Execution {
  std::uint64_t pause = 0;       // between launches
  std::uint64_t kernel = 0;      // on the GPU
  std::uint64_t copy = 0;        // on the GPU, after the kernels
  std::uint64_t spacing = 0;     // from one's end to the next
  std::uint64_t others = 0;      // in another call
  std::uint64_t collective = 0;  // on the GPU, after the kernels
  std::uint64_t beside = 0;      // of that, another kernel runs at the same time
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
    if (execution.collective) {
      std::uint64_t issued = program.now;
      program.launch(ALL_REDUCE, 2 * US);
      ran("kernel", fmt::format(R"("kernel":"{}")", ALL_REDUCE), issued, execution.collective);
      if (execution.beside)
        operations.line(fmt::format(
            R"({{"type":"gpu","op":"kernel","ts":{},"duration_us":{}.000,"pid":7,"unjoined":"no_call","queue":2,"device":0,"kernel":"a"}})",
            free - execution.collective, execution.beside / 1000));
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

TEST_CASE("Collectives that no other work overlaps bound a program, not the GPU that runs them") {
  Json summary = summary_of({.kernel = 20 * US, .collective = 120 * US});
  Json first = summary["verdict"][0];
  CHECK(first["id"] == "communication");
  CHECK(first["sure"] == "known");
  CHECK_THAT(first["text"].get<std::string>(),
             ContainsSubstring("of an iteration is collectives that no other work overlaps"));
  Json work = summary["measured"]["work"];
  CHECK(work["each_iteration"]["exposed_p50_us"] == 120.0);
  CHECK(work["each_iteration"]["busy_p50_us"] == 200.0);
  CHECK(work["compute_us"] == 9 * 80.0);
  CHECK(work["communication"]["exposed_us"] == 9 * 120.0);
  CHECK(first["figures"]["gpu_exposed_communication_share"] ==
        work["communication"]["exposed_share"]);
  for (const Json& finding : summary["verdict"]) CHECK(finding["id"] != "gpu_bound");
}

TEST_CASE("Collectives that other work hides bound nothing") {
  Json summary = summary_of({.kernel = 20 * US, .collective = 120 * US, .beside = 110 * US});
  CHECK(summary["verdict"][0]["id"] == "gpu_bound");
  CHECK(summary["measured"]["work"]["each_iteration"]["exposed_p50_us"] == 10.0);
  CHECK(summary["measured"]["work"]["communication"]["hidden_us"] == 9 * 110.0);
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

namespace {

// Two ranks that make ten iterations of two kernels and a collective each.
std::string two_ranks() {
  std::string calls, operations;
  int id = 0;
  for (std::uint64_t pid : {7U, 8U}) {
    calls += fmt::format(
        R"({{"type":"process","op":"start","ts":1,"pid":{},"comm":"train","rank":{{"RANK":{}}}}})"
        "\n",
        pid, 8 - pid);
    std::uint64_t now = 1 * MS, late = pid == 8 ? 300 * US : 0;
    for (int i = 0; i < 10; i++, now += 1 * MS) {
      std::uint64_t at = now + late, begin = at + 5 * US;
      for (auto [kernel, end] : {std::pair{"a", begin + 100 * US}, std::pair{"b", begin + 200 * US},
                                 std::pair{ALL_REDUCE.data(), now + 600 * US}}) {
        calls += fmt::format(
            R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},"duration_us":1.000,"pid":{},"tid":{},"ret":0,"stream":"0x0","async":true,"kernel":"{}"}})"
            "\n",
            ++id, at, pid, pid, kernel);
        operations += fmt::format(
            R"({{"type":"gpu","op":"kernel","ts":{},"duration_us":{}.000,"pid":{},"call":{},"stream":"0x0","queue":1,"device":0,"kernel":"{}"}})"
            "\n",
            begin, (end - begin) / 1000, pid, id, kernel);
        at += 2 * US;
        begin = end;
      }
      calls += fmt::format(
          R"({{"id":{},"type":"sync","op":"stream","name":"cuStreamSynchronize","ts":{},"duration_us":{}.000,"pid":{},"tid":{},"ret":0,"stream":"0x0"}})"
          "\n",
          ++id, at, (now + 605 * US - at) / 1000, pid, pid);
    }
  }
  return calls + operations;
}

}  // namespace

TEST_CASE("The iterations and phases of several ranks stand side by side") {
  TraceText trace(two_ranks(), R"(,"gpu_timing":"nodes")",
                  R"({"type":"end","ts":12000000,"duration_ns":12000000})"
                  "\n");
  Summary summary(trace.names(), {});
  trace.show(summary);
  Json steps = summary.json()["summary"]["steps"];
  REQUIRE(steps.size() == 2);
  CHECK(steps[0]["rank"] == 0);
  CHECK(steps[0]["pid"] == 8);
  CHECK(steps[1]["pid"] == 7);
  for (const Json& one : steps) {
    CHECK(one["iterations"] == 10);
    CHECK(one["p50_us"] == 1000.0);
    CHECK(one["compute_us"] == 200.0);
    CHECK(one["hidden_us"] == 0.0);
  }
  CHECK(steps[0]["exposed_us"] == 95.0);  // from 505 to 600 µs
  CHECK(steps[1]["exposed_us"] == 395.0);
  CHECK(steps[1]["exposed_share"] == 39.5);
  CHECK(steps[1]["bound"] == "Communication");
  Json phases = steps[1]["phases"];
  auto inference = std::find_if(phases.begin(), phases.end(),
                                [](const Json& phase) { return phase["name"] == "inference"; });
  REQUIRE(inference != phases.end());
  CHECK((*inference)["gpu"]["communication"]["exposed_us"] == 10 * 395.0);
  std::string page = page_text([&](Page& to) { summary.add_to(to, true); });
  CHECK_THAT(page, ContainsSubstring("rank 0, 8 train") &&
                       ContainsSubstring("phases of each process") &&
                       ContainsSubstring("rank 0   rank 1"));
}
