#include "analyze/energy/energy.hpp"

#include <fmt/format.h>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* HEADER =
    R"({"type":"trace","sampling":{"source":"nvml","gpus":[{"device":0,"name":"NVIDIA H200"}]}})";

struct Measured {
  Trace trace;
  // A sample each 0.1 s, from this second to that one; the counter is read each second.
  Measured& gpu(int from, int to, double sm_active, double watts, const std::string& rest = "") {
    for (int tenth = from * 10; tenth < to * 10; tenth++) {
      std::string energy = tenth % 10 ? "" : fmt::format(R"(,"energy_j":{:.3f})", joules);
      trace.line(fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"device":0,"window_ms":100.0,)"
                             R"("sm_active":{:.1f},"power_w":{:.1f}{}{}}})",
                             tenth * 100'000'000L, sm_active, watts, energy, rest));
      joules += watts / 10;
    }
    return *this;
  }
  Json json(Part part = {}, const char* header = HEADER) {
    LineParser parser;
    Energy energy(parser.names(), 0, part);
    each_line(parser, trace.text, [&](const Line& line) { show(line, part, energy); });
    TraceFacts facts;
    facts.header = header;
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

TEST_CASE("A run's energy is told with its window, its error and what is above idle") {
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
  CHECK_THAT(run.page, ContainsSubstring("4008 J"));
  CHECK_THAT(run.page, ContainsSubstring("Idle, this GPU used 127 W"));
  CHECK_THAT(run.page, ContainsSubstring("Process 42 alone had the GPU"));
}

TEST_CASE("Without an idle second only totals are told, and several processes are not told apart") {
  Measured run;
  run.gpu(0, 5, 50, 300, R"(,"processes":[{"pid":42},{"pid":43}])");
  Json gpu = run.json()["gpus"][0];
  CHECK(gpu["idle"].is_null());
  CHECK_FALSE(gpu["all"].contains("above_idle_j"));
  CHECK_FALSE(gpu["process"].contains("energy_j"));
  CHECK_THAT(run.page, ContainsSubstring("is not known: energy is all that it used"));
  CHECK_THAT(run.page, ContainsSubstring("Not told by process: several processes"));
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
  CHECK_THAT(run.page, ContainsSubstring("Not told, since they took less than a second: all."));
  gpu = run.json({.from = 5'500'000'000, .to = 6'500'000'000})["gpus"][0];
  CHECK_FALSE(gpu["all"].contains("energy_j"));
  CHECK_THAT(run.page, ContainsSubstring("not told, since the counter's readings in it span 0"));
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

TEST_CASE("A trace without the counter's readings says why there is nothing to tell") {
  Measured none;
  CHECK(
      none.json(
          {}, R"({"sampling":{"source":"none","why":"no NVIDIA driver is loaded"}})")["why_not"] ==
      "the trace has no samples of GPUs: no NVIDIA driver is loaded");
  CHECK_THAT(none.page, ContainsSubstring("no NVIDIA driver is loaded"));
  Measured idle;
  idle.trace.line(R"({"type":"gpu","op":"sample","ts":1,"device":0,"power_w":1})");
  CHECK(idle.json({}, R"({"sampling":{"gpus":[1,{"device":-1},{"device":1e300}]}})")["why_not"] ==
        "no sample has a reading of an energy counter");
  CHECK(idle.json({}, "[")["gpus"].empty());
}

TEST_CASE("A trace may name any number of GPUs, each with its own counter") {
  Measured many;
  for (int device = 0; device < 5000; device++)
    for (int s = 0; s < 3; s++)
      many.trace.line(
          fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"device":{},"energy_j":{}}})",
                      s * 1'000'000'000L, device, s * 100));
  Json report = many.json();
  CHECK(report["gpus"].size() == 64);
  CHECK(report["gpus"][63]["all"]["energy_j"].get<double>() == Approx(200));
}
