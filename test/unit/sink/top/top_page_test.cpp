#include "sink/top/top_page.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/units.hpp"

using namespace cudabpf;

namespace {

TopInterval with_gpus(std::uint32_t count) {
  TopInterval interval;
  interval.end_ns = SECOND;
  for (std::uint32_t device = 0; device < count; device++) {
    GpuSample sample;
    sample.device = device;
    sample.window_ns = 100 * MS;
    sample.sm_active = 50;
    sample.power_w = 350;
    sample.memory_used = 20.0 * (1 << 30);
    interval.gpus.add(sample);
    interval.sampled_gpus[device] = {"NVIDIA H100", 80.0 * (1 << 30), 700};
  }
  return interval;
}

std::vector<std::string> lines_of(const TopInterval& interval, const TopView& view,
                                  ScreenFrame::Size size) {
  TopHistory history;
  history.add(interval);
  std::istringstream text(draw_top({interval, history, {}, {}}, view, size, false).text());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::size_t count(const std::vector<std::string>& lines, std::string_view text) {
  std::size_t found = 0;
  for (const std::string& line : lines)
    for (auto at = line.find(text); at != line.npos; at = line.find(text, at + 1)) found++;
  return found;
}

}  // namespace

TEST_CASE("top draws a GPU's memory and power against all that it has, with their names") {
  auto lines = lines_of(with_gpus(1), {}, {24, 100});
  CHECK(lines.at(4) ==
        "GPU 0 NVIDIA H100   SM [||||   ]  50 %  mem [||     ] 20.0 GiB of 80.0 GiB  power "
        "[||||   ]   350 W");
}

TEST_CASE("top draws no bar where it does not know what is the most") {
  TopInterval interval = with_gpus(1);
  interval.sampled_gpus.clear();
  auto lines = lines_of(interval, {}, {24, 80});
  CHECK(lines.at(4).find("mem 20.0 GiB  power   350 W") != std::string::npos);
}

TEST_CASE("top shows eight GPUs at 120x30") {
  auto lines = lines_of(with_gpus(8), {}, {30, 120});
  CHECK(count(lines, "20.0 GiB of 80.0 GiB") == 8);
  CHECK(count(lines, "more GPUs") == 0);
}

TEST_CASE("top says which key shows the GPUs that it hides, and that key shows them") {
  TopView view;
  TopInterval interval = with_gpus(8);
  auto lines = lines_of(interval, view, {24, 80});
  CHECK(count(lines, "20.0 GiB") == 2);
  CHECK(count(lines, "6 more GPUs: g shows them") == 1);
  view.press({Key::Code::character, U'g'}, interval, 10);
  lines = lines_of(interval, view, {24, 80});
  CHECK(count(lines, "20.0 GiB") == 8);
  CHECK(count(lines, "more GPUs") == 0);
  CHECK(count(lines, "CALLS/S") == 1);
}

TEST_CASE("top names an error's process and how often it came") {
  TopInterval interval = with_gpus(1);
  interval.errors = {{2 * SECOND, 42, "cuMemAlloc: CUDA_ERROR_INVALID_VALUE", "trainer", 21087}};
  auto lines = lines_of(interval, {}, {24, 100});
  CHECK(lines.at(22) == "00:02 42 trainer 21,087 x cuMemAlloc: CUDA_ERROR_INVALID_VALUE");
}

TEST_CASE("top counts processes that have ended apart") {
  TopInterval interval = with_gpus(1);
  interval.processes.resize(3);
  interval.processes[2].ended = true;
  auto lines = lines_of(interval, {}, {24, 100});
  CHECK(lines.at(0).find("2 processes, 1 ended") != std::string::npos);
}
