#include "analyze/energy/energy_readings.hpp"

#include "support/units.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Approx;

namespace {

constexpr std::uint64_t EVER = ~std::uint64_t{0};

// A reading a second, of a GPU that uses so much.
EnergyReadings steady(double watts, std::uint64_t seconds) {
  EnergyReadings readings;
  for (std::uint64_t s = 0; s <= seconds; s++)
    readings.add(s * SECOND, 1000 + watts * static_cast<double>(s));
  return readings;
}

GpuSample sampled(double seconds, double sm_active, std::optional<double> watts) {
  GpuSample sample;
  sample.ts = static_cast<std::uint64_t>(seconds * 1e9);
  sample.sm_active = sm_active;
  sample.power_w = watts;
  return sample;
}

GpuSample with_processes(std::uint64_t ts, std::vector<GpuProcess> processes) {
  GpuSample sample;
  sample.ts = ts;
  sample.processes = std::move(processes);
  return sample;
}

}  // namespace

TEST_CASE(
    "Energy is the difference of the readings inside a time, with a step's error at each end") {
  EnergyReadings readings = steady(700, 10);
  EnergyUsed used = readings.between(2 * SECOND + 1, 7 * SECOND - 1);
  REQUIRE(used.known());
  CHECK(used.from == 3 * SECOND);
  CHECK(used.to == 6 * SECOND);
  CHECK(used.joules == Approx(2100));
  CHECK(used.watts() == Approx(700));
  CHECK(used.error == Approx(140));
  used = readings.between(0, EVER);
  CHECK(used.joules == Approx(7000));
}

TEST_CASE("No energy is shown for less than a second, nor where the counter was not read") {
  EnergyReadings none;
  CHECK(none.between(0, EVER).why_not == "the counter was not read in that time");
  EnergyReadings readings = steady(700, 10);
  CHECK_FALSE(readings.between(11 * SECOND, EVER).known());
  CHECK_FALSE(readings.between(SECOND + 1, SECOND + 2).known());
  CHECK(readings.between(SECOND, 2 * SECOND - 1).why_not ==
        "the counter was read only once in that time");
  CHECK(readings.between(SECOND, 2 * SECOND).known());
  CHECK_FALSE(readings.between(5 * SECOND, 4 * SECOND).known());
  EnergyReadings close;
  close.add(SECOND, 1000);
  close.add(SECOND + SECOND / 2, 1350);
  CHECK(close.between(0, EVER).why_not.find("at least 1 s") != std::string::npos);
}

TEST_CASE("A counter that goes back, or leaps, says nothing of a time that has it") {
  EnergyReadings readings;
  double joules[] = {100, 200, 50, 150, 900, 1000};
  for (std::uint64_t s = 0; s < std::size(joules); s++) readings.add(s * SECOND, joules[s]);
  CHECK(readings.between(0, SECOND).known());
  CHECK(readings.between(0, EVER).why_not == "the counter went back in it: the GPU was reset");
  CHECK_FALSE(readings.between(SECOND, 2 * SECOND).known());
  CHECK(readings.between(2 * SECOND, EVER).joules == Approx(950));
  EnergyReadings leaping;
  leaping.add(0, 0);
  leaping.add(SECOND, 1e9);
  CHECK_FALSE(leaping.between(0, EVER).known());
}

TEST_CASE("Readings that are out of order are not cudabpf's") {
  EnergyReadings readings;
  readings.add(5 * SECOND, 500);
  readings.add(5 * SECOND, 900);
  readings.add(1 * SECOND, 100);
  readings.add(7 * SECOND, 700);
  CHECK(readings.between(0, EVER).joules == Approx(200));
}

TEST_CASE("The readings of a week are thinned out, and their sum stays exact") {
  constexpr std::uint64_t WEEK = 7 * 24 * 3600;
  EnergyReadings readings = steady(300, WEEK);
  EnergyUsed used = readings.between(0, EVER);
  CHECK(used.joules == Approx(300.0 * WEEK));
  CHECK(used.to == WEEK * SECOND);
  used = readings.between(1000 * SECOND, 2000 * SECOND);
  CHECK(used.watts() == Approx(300));
  CHECK(used.seconds() > 950);
}

TEST_CASE("Idle power is the least mean of a second without activity, once the GPU has settled") {
  IdlePower idle;
  CHECK_FALSE(idle.least());
  auto add = [&](double from, double to, double active, double watts) {
    for (double at = from; at < to - 1e-6; at += 0.1) idle.add(sampled(at, active, watts));
  };
  add(0, 2, 90, 700);
  add(2, 3, 0, 300);  // it has only just stopped
  CHECK_FALSE(idle.least());
  add(3, 5.5, 0, 127);
  REQUIRE(idle.least());
  CHECK(idle.least()->watts == Approx(127));
  CHECK(idle.least()->to - idle.least()->from >= SECOND);
  add(5.5, 6, 1, 20);  // it does something, if little
  add(6, 7.9, 0, 50);  // not a second after the first
  CHECK(idle.least()->watts == Approx(127));
  add(7.9, 10, 0, 120);
  CHECK(idle.least()->watts < 127);
}

TEST_CASE("Samples that go back in time begin no idle second") {
  IdlePower idle;
  for (double at : {10.0, 10.1, 10.2, 10.3, 5.0, 5.1, 5.2, 5.3}) idle.add(sampled(at, 0, 100));
  CHECK_FALSE(idle.least());
}

TEST_CASE("Idle power before the first process comes is not mixed with that after it") {
  IdlePower idle;
  auto add = [&](double from, double to, double watts) {
    for (double at = from; at < to - 1e-6; at += 0.1) idle.add(sampled(at, 0, watts));
  };
  SECTION("a second before it is shown") {
    add(0, 1.25, 79);
    add(1.25, 4, 119);
    REQUIRE(idle.least());
    CHECK(idle.least()->watts == Approx(79));
    CHECK(idle.least()->to <= SECOND + SECOND / 4);
  }
  SECTION("less than a second is not") {
    add(0, 0.65, 79);
    add(0.65, 4, 119);
    REQUIRE(idle.least());
    CHECK(idle.least()->watts == Approx(119));
  }
}

TEST_CASE("Samples without activity or power say nothing of idleness") {
  IdlePower idle;
  for (int i = 0; i < 100; i++) {
    GpuSample sample = sampled(i * 0.1, 0, 100);
    (i % 2 ? sample.sm_active : sample.power_w).reset();
    idle.add(sample);
  }
  CHECK_FALSE(idle.least());
}

TEST_CASE("A GPU's energy counts for a process only if NVML named that one alone") {
  SoleProcess sole;
  CHECK(sole.why_not() == "the trace does not say which processes had the GPU");
  sole.add(with_processes(1, {}));
  CHECK_FALSE(sole.pid());
  CHECK(sole.why_not() == "NVML named no process; in a container it may not see any");
  sole.add(with_processes(5, {{10, {}}}));
  sole.add(with_processes(9, {{10, {}}}));
  sole.add({});
  CHECK(sole.pid() == 10);
  CHECK(sole.why_not().empty());
  CHECK(sole.first() == 5);
  CHECK(sole.last() == 9);
  sole.add(with_processes(12, {{10, {}}, {20, {}}}));
  CHECK_FALSE(sole.pid());
  CHECK(sole.why_not().find(": 10, 20") != std::string::npos);
  for (std::uint32_t pid = 0; pid < 100'000; pid++) sole.add(with_processes(20, {{pid, {}}}));
  CHECK(sole.why_not().size() < 300);
}
