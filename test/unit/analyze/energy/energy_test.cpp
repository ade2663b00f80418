#include "analyze/energy/energy.hpp"

#include <fmt/format.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* HEADER =
    R"({"type":"trace","sampling":{"source":"nvml","gpus":[{"gpu":0,"name":"NVIDIA H200"}]}})";

struct Measured {
  Trace trace;
  // A sample each 0.1 s, from this second to that one; the counter is read each second.
  Measured& gpu(int from, int to, double sm_active, double watts, const std::string& rest = "") {
    for (int tenth = from * 10; tenth < to * 10; tenth++) {
      std::string energy = tenth % 10 ? "" : fmt::format(R"(,"energy_j":{:.3f})", joules);
      trace.line(fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"gpu":0,"window_ms":100.0,)"
                             R"("sm_active":{:.1f},"power_w":{:.1f}{}{}}})",
                             tenth * 100'000'000L, sm_active, watts, energy, rest));
      joules += watts / 10;
    }
    return *this;
  }
  // In each tenth from this second to that one; `what`: "op":"kernel",…
  Measured& work(int from, int to, int after_ms, int ms, const std::string& what, int pid = 42) {
    for (int tenth = from * 10; tenth < to * 10; tenth++)
      trace.line(fmt::format(R"({{"type":"gpu",{},"ts":{},"duration_us":{},"pid":{},"device":0}})",
                             what, tenth * 100'000'000L + after_ms * 1'000'000L, ms * 1000, pid));
    return *this;
  }
  Json json(Part part = {}, const char* header = HEADER) {
    LineParser parser;
    Energy energy(parser.names(), {}, part);
    each_line(parser, trace.text, [&](const Line& line) { show(line, part, energy); });
    TraceFacts facts;
    facts.header = header_in(header).value();
    facts.last_ts = 60'000'000'000;
    energy.finish(facts);
    Page to({.width = 160}, 160);
    add_energy(to, energy);
    page = to.take();
    return energy_json(energy)["gpu_energy_report"];
  }
  double joules = 9e6;
  std::string page;
};

}  // namespace

TEST_CASE("A run's energy is shown with its window, its error and what is above idle") {
  Measured run;
  run.gpu(0, 4, 0, 127).gpu(4, 10, 96.4, 700, R"(,"processes":[{"pid":42}])");
  Json gpu = run.json()["gpus"][0];
  CHECK(gpu["device"] == 0);
  CHECK(gpu["name"] == "NVIDIA H200");
  const Json& all = gpu["all"];
  CHECK(all["window_us"] == Json::array({0.0, 9e6}));
  CHECK(all["energy_j"].get<double>() == Approx(4 * 127 + 5 * 700));
  CHECK(all["mean_power_w"].get<double>() == Approx(4008.0 / 9));
  CHECK(all["error_j"].get<double>() == Approx(0.2 * 4008 / 9));
  CHECK(all["above_idle_j"].get<double>() == Approx(4008 - 9 * 127));
  CHECK(gpu["idle"]["power_w"].get<double>() == Approx(127));
  CHECK(gpu["iterations"].is_null());
  CHECK(gpu["phases"].empty());
  CHECK(gpu["process"]["pid"] == 42);
  CHECK(gpu["process"]["energy_j"].get<double>() == Approx(5 * 700));
  CHECK_THAT(run.page, ContainsSubstring("4,008 J"));
  CHECK_THAT(run.page, ContainsSubstring("Idle, this GPU used 127 W"));
  CHECK_THAT(run.page, ContainsSubstring("only process 42 had the GPU"));
}

constexpr const char* GEMM = R"("op":"kernel","kernel":"ampere_sgemm_128x64_tn")";
constexpr const char* SOFTMAX = R"("op":"kernel","kernel":"softmax_warp_forward")";

TEST_CASE("What was used above idle is shared among classes of kernels by their time") {
  Measured run;
  run.gpu(0, 4, 0, 127).gpu(4, 10, 96.4, 727, R"(,"processes":[{"pid":42}])");
  run.work(5, 10, 10, 30, GEMM).work(5, 10, 40, 30, GEMM).work(5, 10, 50, 20, SOFTMAX);
  run.work(5, 10, 70, 2, R"("op":"copy","size":4096)");
  Json model = run.json()["gpus"][0]["kernel_classes"];
  std::map<std::string, Json> classes;
  double sum = model["nothing_ran_j"].get<double>();
  for (const Json& one : model["classes"]) {
    classes[one["class"].get<std::string>()] = one;
    sum += one["energy_j"].get<double>();
  }
  CHECK(classes.size() == 3);
  // A sample is about the tenth before it. In the first eleven of sixty, of 60 J each, nothing ran.
  CHECK(model["above_idle_j"].get<double>() == Approx(3600).epsilon(0.002));
  CHECK(sum == Approx(model["above_idle_j"].get<double>()));
  CHECK(model["nothing_ran_j"].get<double>() == Approx(660).epsilon(0.01));
  CHECK(classes["matrix multiply"]["gpu_time_us"].get<double>() == Approx(3e6).epsilon(0.03));
  CHECK(classes["matrix multiply"]["energy_j"].get<double>() ==
        Approx(2940 * 60.0 / 82).epsilon(0.01));
  CHECK(classes["normalisation"]["energy_j"].get<double>() ==
        Approx(2940 * 20.0 / 82).epsilon(0.01));
  CHECK(classes["copies"]["energy_j"].get<double>() == Approx(2940 * 2.0 / 82).epsilon(0.02));
  CHECK_THAT(run.page, ContainsSubstring("energy by class, a model"));
  CHECK_THAT(run.page, ContainsSubstring("while hardly anything ran"));
}

TEST_CASE("Without the necessary readings, energy is not shared among classes") {
  Measured plain;
  CHECK(plain.gpu(0, 4, 0, 127).json()["gpus"][0]["kernel_classes"].is_null());
  Measured busy;
  busy.gpu(0, 4, 50, 300).work(0, 4, 0, 10, GEMM);
  CHECK(busy.json()["gpus"][0]["kernel_classes"]["why_not"] ==
        "what the GPU uses when it is idle is not known");
  Measured others;
  others.gpu(0, 4, 0, 127, R"(,"processes":[{"pid":42},{"pid":43}])").work(0, 4, 0, 20, GEMM);
  CHECK_THAT(others.json()["gpus"][0]["kernel_classes"]["why_not"].get<std::string>(),
             ContainsSubstring("whose work was not measured"));
  others.work(0, 4, 20, 20, GEMM, 43);
  CHECK(others.json()["gpus"][0]["kernel_classes"].contains("classes"));
  others.trace.line(R"({"type":"gpu","op":"sample","ts":1,"gpu":1,"power_w":100})");
  CHECK_THAT(others.json()["gpus"][0]["kernel_classes"]["why_not"].get<std::string>(),
             ContainsSubstring("several GPUs"));
}

TEST_CASE("A short kernel does not account for the variation of an idle GPU's power") {
  Measured moment;
  moment.gpu(0, 4, 0, 100).gpu(4, 10, 0, 110).work(4, 10, 50, 1, GEMM);
  CHECK(moment.json()["gpus"][0]["kernel_classes"]["why_not"] ==
        "all that ran took less than a second on the GPU");
  Measured mixed;
  mixed.gpu(0, 4, 0, 100).gpu(4, 6, 96, 600).gpu(6, 10, 1, 110);
  mixed.work(4, 6, 0, 80, GEMM).work(6, 10, 50, 1, SOFTMAX);
  Json model = mixed.json()["gpus"][0]["kernel_classes"];
  std::map<std::string, double> joules;
  for (const Json& one : model["classes"])
    joules[one["class"].get<std::string>()] = one["energy_j"].get<double>();
  CHECK(joules["matrix multiply"] == Approx(1000).epsilon(0.06));
  CHECK(joules["normalisation"] == 0);
  // The first of 600 W is about a tenth in which nothing ran.
  CHECK(model["nothing_ran_j"].get<double>() == Approx(40 + 50).epsilon(0.05));
}

TEST_CASE("Times that no GPU can have do not break the model") {
  Measured odd;
  odd.gpu(0, 4, 0, 127).work(0, 4, 0, 10, GEMM);
  odd.trace.line(
      R"({"type":"gpu","op":"kernel","ts":1,"duration_us":9000000000000.0,"pid":42,"kernel":"k"})");
  odd.trace.line(
      R"({"type":"gpu","op":"kernel","ts":9000000000000000000,"duration_us":9000000.0,"pid":42})");
  odd.trace.line(
      R"({"type":"gpu","op":"sample","ts":9000000000000000000,"gpu":0,"power_w":1e300})");
  CHECK(odd.json()["gpus"].size() == 1);
}

TEST_CASE(
    "Without an idle second only totals are shown, and several processes are not distinguished") {
  Measured run;
  run.gpu(0, 5, 50, 300, R"(,"processes":[{"pid":42},{"pid":43}])");
  Json gpu = run.json()["gpus"][0];
  CHECK(gpu["idle"].is_null());
  CHECK_FALSE(gpu["all"].contains("above_idle_j"));
  CHECK_FALSE(gpu["process"].contains("energy_j"));
  CHECK_THAT(run.page, ContainsSubstring("not known; the energy shown includes it"));
  Measured brief;
  brief.gpu(0, 1, 50, 300);
  brief.json({.to = 900'000'000});
  CHECK_THAT(brief.page, ContainsSubstring("GPU 0") && ContainsSubstring("is idle is not known."));
  CHECK_THAT(run.page, ContainsSubstring("No figure by process: several processes"));
}

TEST_CASE("A part of a trace has its own energy, and the idle power of all of it") {
  Measured run;
  run.gpu(0, 4, 0, 127).gpu(4, 12, 96.4, 700);
  Json gpu = run.json({.from = 5'500'000'000, .to = 9'500'000'000})["gpus"][0];
  CHECK(gpu["all"]["window_us"] == Json::array({6e6, 9e6}));
  CHECK(gpu["all"]["energy_j"].get<double>() == Approx(2100));
  CHECK(gpu["idle"]["power_w"].get<double>() == Approx(127));
  gpu = run.json({.from = 5'500'000'000, .to = 6'400'000'000})["gpus"][0];
  CHECK_FALSE(gpu["all"].contains("energy_j"));
  CHECK_THAT(run.page, ContainsSubstring("Shorter than 1 s, so no figure: all."));
  gpu = run.json({.from = 5'500'000'000, .to = 6'500'000'000})["gpus"][0];
  CHECK_FALSE(gpu["all"].contains("energy_j"));
  CHECK_THAT(run.page, ContainsSubstring("No figure for all: the counter was read only once"));
  gpu = run.json({.from = 5'100'000'000, .to = 5'900'000'000})["gpus"][0];
  CHECK_FALSE(gpu["all"].contains("energy_j"));
  CHECK(gpu["idle"]["power_w"].get<double>() == Approx(127));
  CHECK_THAT(run.page, ContainsSubstring("Shorter than 1 s, so no figure: all."));
}

TEST_CASE("Iterations share the energy between the readings that lie among them") {
  Measured run;
  for (int i = 0; i < 40; i++) {  // half a second each
    for (const char* kernel : {"a", "b", "c"}) {
      run.trace.now = static_cast<std::uint64_t>(i) * 500'000 + 2'000'000;
      run.trace.call("kernel", "launch",
                     fmt::format(R"("name":"cuLaunchKernel","kernel":"{}")", kernel));
    }
    run.trace.call("sync", "stream", R"("name":"cuStreamSynchronize","stream":"0x0")");
  }
  run.gpu(0, 30, 90, 400);
  Json gpu = run.json()["gpus"][0];
  const Json& iterations = gpu["iterations"];
  REQUIRE(iterations.is_object());
  CHECK(iterations["mean_power_w"].get<double>() == Approx(400));
  CHECK(iterations["each_j"].get<double>() == Approx(200).epsilon(0.01));
  double seconds =
      (iterations["window_us"][1].get<double>() - iterations["window_us"][0].get<double>()) / 1e6;
  CHECK(iterations["count"].get<double>() == Approx(seconds * 2).epsilon(0.01));
  CHECK(iterations["each_error_j"].get<double>() == Approx(80 / iterations["count"].get<double>()));
  CHECK_FALSE(gpu["phases"].empty());
  CHECK_THAT(run.page, ContainsSubstring("An iteration used"));
}

TEST_CASE("A trace without the counter's readings says why there is nothing to show") {
  Measured none;
  CHECK(
      none.json(
          {}, R"({"sampling":{"source":"none","why":"no NVIDIA driver is loaded"}})")["why_not"] ==
      "this trace has no GPU samples (no NVIDIA driver is loaded)");
  CHECK_THAT(none.page, ContainsSubstring("no NVIDIA driver is loaded"));
  Measured idle;
  idle.trace.line(R"({"type":"gpu","op":"sample","ts":1,"gpu":0,"power_w":1})");
  CHECK(idle.json({}, R"({"sampling":{"gpus":[1,{"device":-1},{"device":1e300}]}})")["why_not"] ==
        "no sample has a reading of an energy counter");
  CHECK(idle.json({}, "{}")["gpus"].empty());
  Measured unexplained;
  CHECK(unexplained.json({}, "{}")["why_not"] ==
        "this trace has no GPU samples (its header does not say why)");
}

TEST_CASE("A trace may name any number of GPUs, each with its own counter") {
  Measured many;
  for (int device = 0; device < 5000; device++)
    for (int s = 0; s < 3; s++)
      many.trace.line(
          fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"gpu":{},"energy_j":{}}})",
                      s * 1'000'000'000L, device, s * 100));
  Json report = many.json();
  CHECK(report["gpus"].size() == 64);
  CHECK(report["gpus"][63]["all"]["energy_j"].get<double>() == Approx(200));
}
