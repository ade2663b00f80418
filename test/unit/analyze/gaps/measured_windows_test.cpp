#include "analyze/gaps/measured_windows.hpp"

#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <utility>

#include "support/measured_gpus.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using namespace samples;

namespace {

constexpr std::string_view IN_WINDOWS = R"(,"gpu_window":{"window_ns":100000,"period_ns":1000000})";

// Launches every 10 µs, from 10 µs on, each of which runs for 4 µs at once; only what is issued in
// the windows is reported.
SampleProgram in_windows(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> windows,
                         std::uint64_t launches, std::uint64_t takes = 4'000) {
  SampleProgram program;
  for (std::uint64_t i = 0; i < launches; i++) {
    program.launch("a", 1'000);
    program.pause(9'000);
  }
  for (auto [begin, end] : windows) {
    for (std::uint64_t i = 0; i < launches; i++) {
      std::uint64_t issued = i * 10'000;
      if (issued >= begin && issued < end) ran(program, i + 1, issued + 2'000, takes);
    }
    program.line(
        fmt::format(R"({{"type":"gpu","op":"window","ts":{},"duration_us":{}.{:03},"pid":{}}})",
                    begin, (end - begin) / 1000, (end - begin) % 1000, program.pid));
  }
  return program;
}

Measured measured_in_windows(const SampleProgram& program,
                             std::size_t kept = GpusAtWork::MAX_KEPT) {
  return Measured(program, {}, kept, {}, IN_WINDOWS);
}

}  // namespace

TEST_CASE("What lies between windows is neither busy nor idle") {
  for (std::size_t kept : {GpusAtWork::MAX_KEPT, std::size_t{8}}) {
    Measured measured(in_windows({{100'000, 200'000}, {700'000, 800'000}}, 100), {}, kept, {},
                      IN_WINDOWS);
    CHECK(measured.gpu().operations == 20);
    CHECK(measured.gpu().window() == 200'000);
    CHECK(measured.gpu().busy_time() == 80'000);
    CHECK(measured.gpu().idle_time() == 120'000);
    CHECK(measured.gpu().idle.count() == 18);
    CHECK(measured.gpu().by_cause.total() == 120'000);
    CHECK(measured.gpu().by_window.count() == 2);
    CHECK(measured.gpu().by_window.error() == 0);
    for (const GpuGap& gap : measured.times.longest()) CHECK(gap.time() == 6'000);
    GpuCurve::Share between = measured.gpu().curve.between(250'000, 650'000);
    CHECK(between.time == 0);
    CHECK(between.busy == 0);
    GpuCurve::Share all = measured.gpu().curve.between(0, 1'000'000);
    CHECK(all.time == 200'000);
    CHECK(all.busy == 80'000);
  }
}

TEST_CASE("A window in which nothing was issued counts as idle, and shows in the error") {
  Measured measured =
      measured_in_windows(in_windows({{100'000, 200'000}, {1'700'000, 1'800'000}}, 100));
  CHECK(measured.gpu().window() == 200'000);
  CHECK(measured.gpu().busy_time() == 40'000);
  CHECK(measured.gpu().by_window.count() == 2);
  CHECK(measured.gpu().by_window.error() > 0.19);
  CHECK(measured.gpu().by_window.error() < 0.21);
}

TEST_CASE("What was issued in a window counts to its end, also behind the window") {
  Measured measured = measured_in_windows(in_windows({{100'000, 200'000}, {700'000, 800'000}}, 100,
                                                     /*takes=*/9'990));
  CHECK(measured.gpu().busy_time() == 2 * 10 * 9'990);
  CHECK(measured.gpu().idle_time() == 200);
}

TEST_CASE("A GPU is never busy for more than its windows") {
  Measured measured = measured_in_windows(in_windows({{100'000, 200'000}, {700'000, 800'000}}, 100,
                                                     /*takes=*/30'000));
  CHECK(measured.gpu().busy_time() == 200'000);
  CHECK(measured.gpu().idle_time() == 0);
  CHECK(measured.gpu().curve.between(0, 1'200'000).busy == 200'000);
}

TEST_CASE("What was submitted while a window opened or closed is in none") {
  SampleProgram program = in_windows({{100'000, 200'000}, {700'000, 800'000}}, 100);
  ran(program, 21, 202'500, 4'000);  // issued at 200'000, as the first one closed
  ran(program, 70, 692'500, 4'000);
  Measured measured = measured_in_windows(program);
  CHECK(measured.gpu().operations == 22);
  CHECK(measured.gpu().busy_time() == 80'000);
  CHECK(measured.gpu().idle_time() == 120'000);
  CHECK(measured.gpu().by_cause.total() == 120'000);
  for (const GpuGap& gap : measured.times.longest()) CHECK(gap.time() == 6'000);
}
