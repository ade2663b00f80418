#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "replay/energy/energy_page.hpp"
#include "replay/energy/predicted_energy.hpp"
#include "sample_tape.hpp"

using namespace cudabpf;
using namespace cudabpf::replay;
using Catch::Approx;

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000;

Energy used(std::uint64_t seconds, std::uint64_t joules, std::uint64_t rounds) {
  return {seconds * SECOND, joules * 1000, rounds};
}

// Two kernels, of which the first runs twice; idle at 100 W.
struct SampleEnergy {
  SampleEnergy()
      : tape({launch_step(0, 1), launch_step(1, 1), launch_step(0, 1)}, sample_replay()) {
    REQUIRE(tape.tape);
    replay.idle = used(2, 200, 400);
    replay.repeated = used(10, 2000, 1000);
    Energy emptying = used(5, 2500, 100'000);  // 20 mJ above idle
    replay.launches = {{0, IsolatedTime{{1000}, {3000}, {2000}, 1},
                        IsolatedEnergy{used(5, 1500, 5'000'000), used(5, 2520, 100'000), emptying}},
                       {1, IsolatedTime{{1000}, {1000}, {1000}, 1},
                        IsolatedEnergy{used(5, 3000, 500'000), used(5, 3000, 100'000), emptying}}};
  }
  PredictedEnergy predict() const { return predict_energy(replay, *tape.tape, tape.manifest); }
  SampleTape tape;
  IsolatedReplay replay;
};

}  // namespace

TEST_CASE("An iteration's energy is that of idling and, above it, of its launches in their turn") {
  PredictedEnergy energy = SampleEnergy().predict();
  CHECK(*energy.idle_w == Approx(100));
  REQUIRE(energy.launches.size() == 2);
  const LaunchEnergy& second = energy.launches[0];  // it uses more: 6 mJ, not two times 300 uJ
  CHECK((second.launch == 1 && second.count == 1));
  CHECK(second.joules == Approx(0.006));
  CHECK(second.error_j == Approx(0.00012));  // a tenth of a second of 600 W
  CHECK(*second.warm_j == Approx(0.005));
  CHECK(*second.cold_j == Approx(0.025 - 0.02));
  CHECK(*second.in_turn_j == Approx(0.005));
  const LaunchEnergy& first = energy.launches[1];
  CHECK(*first.warm_j == Approx(0.0002));
  CHECK(*first.cold_j == Approx(0.0202 - 0.02));
  CHECK(*first.in_turn_j == Approx(0.0002));
  CHECK(energy.above_idle_j == Approx(0.005 + 2 * 0.0002));
  REQUIRE(energy.tape);
  CHECK(energy.tape->joules == Approx(2));
  CHECK(energy.tape->seconds == Approx(0.01));
  CHECK(*energy.tape->predicted_j == Approx(1 + 0.0054));
  CHECK(*energy.tape->error_percent == Approx((1.0054 - 2) / 2 * 100));
  CHECK((energy.measured == 3 && energy.not_measured == 0));
}

TEST_CASE("A launch in its turn uses as much between warm and cold as it takes") {
  SampleEnergy sample;
  auto& launch = sample.replay.launches[0];
  launch.energy->emptied = used(5, 2540, 100'000);  // 0.4 mJ more than emptying: cold
  auto in_turn = [&](std::uint64_t ns) {
    launch.time->in_turn_ns = {ns};
    return *sample.predict().launches[1].in_turn_j;
  };
  CHECK(in_turn(1000) == Approx(0.0002));
  CHECK(in_turn(1500) == Approx(0.00025));
  CHECK(in_turn(3000) == Approx(0.0004));
  CHECK(in_turn(9000) == Approx(0.0004));
  launch.time->cold_ns = {1010};
  CHECK(in_turn(9000) == Approx(0.0003));
  launch.energy->emptied.reset();
  CHECK(in_turn(3000) == Approx(0.0002));
}

TEST_CASE("Without the power of an idle GPU, nothing is predicted") {
  SampleEnergy sample;
  sample.replay.idle.reset();
  sample.replay.no_energy = "the energy counter went back";
  PredictedEnergy energy = sample.predict();
  CHECK(energy.launches[0].joules == Approx(0.006));
  CHECK_FALSE(energy.launches[0].warm_j);
  CHECK_FALSE(energy.tape->predicted_j);
  auto json = energy_json(energy, sample.tape.manifest, *sample.tape.tape);
  CHECK(json["idle_power_w"].is_null());
  CHECK(json["iteration"]["predicted_from_kernels_j"].is_null());
  CHECK(json["why_not"] == "the energy counter went back");
}

TEST_CASE("Launches that were not measured are counted") {
  SampleEnergy sample;
  sample.replay.launches[0].energy.reset();
  PredictedEnergy energy = sample.predict();
  CHECK((energy.measured == 1 && energy.not_measured == 2));
  CHECK(energy.above_idle_j == Approx(0.005));
}

TEST_CASE("The program's own iterations stand beside the tape's") {
  SampleEnergy sample;
  PredictedEnergy energy = sample.predict();
  MeasuredIteration each;
  each.joules = 1.2;
  each.seconds = 0.011;
  add_program(energy, {each, {}});
  CHECK(*energy.program->predicted_j == Approx(1.1 + 0.0054));
  CHECK(*energy.program->error_percent == Approx((1.1054 - 1.2) / 1.2 * 100));
  add_program(energy, {std::nullopt, "it ran too short"});
  auto json = energy_json(energy, sample.tape.manifest, *sample.tape.tape);
  CHECK(json["program"].is_null());
  CHECK(json["program_why_not"] == "it ran too short");
}
