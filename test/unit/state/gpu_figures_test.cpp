#include "state/gpu_figures.hpp"

#include "support/units.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace cudabpf;

namespace {

GpuSample energy_at(std::uint64_t ts, double joules) {
  GpuSample sample;
  sample.ts = ts;
  sample.energy_j = joules;
  return sample;
}

}  // namespace

TEST_CASE("A run's figures of a GPU: means over time, the most of each, and joules") {
  GpuFigures figures;
  GpuSample sample = energy_at(0, 1000);
  sample.power_w = 100;
  sample.temperature_c = 40;
  sample.throttle = 1;  // idle
  figures.add(sample);
  sample = {};
  sample.ts = SECOND;
  sample.window_ns = SECOND;
  sample.sm_active = 100;
  sample.power_w = 700;
  sample.temperature_c = 39;
  sample.memory_used = 1 << 30;
  sample.throttle = 4;
  figures.add(sample);
  sample = energy_at(4 * SECOND, 2450.5);
  sample.window_ns = 3 * SECOND;
  sample.sm_active = 20;
  sample.memory_used = 1 << 20;
  figures.add(sample);
  CHECK(figures.samples == 3);
  CHECK(figures.sm_active.mean() == 40);  // 1 s of 100, 3 s of 20
  CHECK(figures.power.mean() == 400);
  CHECK(figures.most_power == 700);
  CHECK(figures.most_temperature == 40);
  CHECK(figures.most_memory == 1 << 30);
  CHECK(figures.energy() == 1450.5);
  CHECK(figures.throttled == 1);
  CHECK(figures.throttle_read == 2);
}

TEST_CASE("What was not read is not known") {
  GpuFigures figures;
  figures.add({});
  CHECK_FALSE(figures.energy());
  CHECK_FALSE(figures.sm_active.mean());
  figures.add(energy_at(5, 10));
  CHECK_FALSE(figures.energy());  // one reading
}

TEST_CASE("A counter that goes back gives no energy, even if it has risen since") {
  GpuFigures figures;
  for (double joules : {1000.0, 2000.0, 5.0, 9000.0})
    figures.add(energy_at(static_cast<std::uint64_t>(joules), joules));
  CHECK(figures.counter_went_back);
  CHECK_FALSE(figures.energy());
}

TEST_CASE("A trace may name any number of GPUs") {
  GpusFigures figures;
  for (std::uint32_t device = 0; device < 100'000; device++) {
    GpuSample sample;
    sample.device = device * 7;
    figures.add(sample);
  }
  CHECK(figures.gpus().size() == 256);
}

TEST_CASE("A table shows the figures of each GPU, and what is not known") {
  GpusFigures figures;
  Page nothing({.width = 100});
  add_gpus(nothing, figures, 16);
  CHECK(nothing.take().empty());
  GpuSample sample = energy_at(0, 1000);
  sample.window_ns = SECOND;
  sample.sm_active = 40;
  sample.power_w = 400;
  sample.memory_used = 1 << 30;
  sample.temperature_c = 40;
  sample.throttle = 4;
  figures.add(sample);
  figures.add(energy_at(SECOND, 24'456));
  for (std::uint32_t device = 1; device < 4; device++) {
    sample = {};
    sample.device = device;
    figures.add(sample);
  }
  Page page({.width = 100});
  add_gpus(page, figures, 2);
  std::string text = page.take();
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("23.46 kJ"));
  for (const char* cell : {"40.0 %", "400 W", "1.00 GiB", "40 °C", "100 %", "GPU 1", "and 2 more"})
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(cell));
  CHECK(text.find("GPU 2") == std::string::npos);
}

namespace {
std::string residence_page(const GpusFigures& figures, const std::string& why_not = "") {
  Page page({.width = 100});
  add_residence(page, figures, 2, why_not);
  return page.take();
}

GpuSample had_by(std::uint32_t device, GpuResidents residents) {
  GpuSample sample;
  sample.device = device;
  sample.residents = std::move(residents);
  return sample;
}
}  // namespace

TEST_CASE(
    "A table shows which processes had a GPU, for how long none did, and how long is not known") {
  GpusFigures figures;
  figures.add(GpuSample{});
  CHECK(residence_page(figures).empty());
  CHECK_THAT(residence_page(figures, "the driver is older"),
             Catch::Matchers::ContainsSubstring("was not recorded: the driver is older."));
  figures.add(had_by(0, {0, SECOND, {{42, SECOND / 2}, {7, SECOND / 10}, {0, SECOND / 10}}, 0}));
  figures.add(had_by(0, {SECOND, 2 * SECOND, {{42, SECOND / 2}}, SECOND / 4}));
  figures.named(42, "python");
  std::string text = residence_page(figures);
  for (const char* row : {"42 python", "1.00 s", "50.0 %", "7 ", "5.0 %", "(without a pid)",
                          "no process", "27.5 %", "(not known)", "12.5 %"})
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(row));
  CHECK(text.find("GPU 0") == std::string::npos);
  figures.add(had_by(1, {0, SECOND, {{42, 2 * SECOND}}, 0}));  // more than there was
  figures.add(had_by(2, {0, SECOND, {{42, SECOND}}, 0}));
  text = residence_page(figures);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("GPU 0: 42 python"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("GPU 1: 42 python"));
  CHECK(text.find("GPU 2") == std::string::npos);
  CHECK(figures.gpus().at(1).residence.no_process() == 0);
}

TEST_CASE("A trace may name any number of processes that had a GPU") {
  GpusFigures figures;
  for (std::uint32_t pid = 1; pid <= 5000; pid++) {
    figures.add(had_by(0, {pid, pid + 10, {{pid, 2}}, 0}));
    figures.named(pid, "p");
  }
  auto processes = figures.gpus().at(0).residence.processes();
  CHECK(processes.size() == 1025);
  CHECK(processes.front() == std::pair<std::uint32_t, std::uint64_t>(0, (5000 - 1024) * 2));
  CHECK(figures.name_of(4096) == "p");
  CHECK(figures.name_of(4097).empty());
  CHECK_THAT(residence_page(figures), Catch::Matchers::ContainsSubstring("1017 more processes"));
}
