// Tapes of one kernel, and how far what other code leaves is from what is expected.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "replay/trial/occurrences.hpp"
#include "replay/trial/trial.hpp"
#include "replay/trial/value_errors.hpp"
#include "sample_tape.hpp"

using namespace cudabpf;
using namespace cudabpf::replay;

namespace {

bundle::Operation copy_step(std::uint64_t address, bool is_to_host, std::uint64_t size = 4) {
  bundle::Operation operation = sample_step(Action::copy);
  bundle::Copy& copy = operation.copy.emplace();
  copy.rows.width = size;
  (is_to_host ? copy.from : copy.to).address = bundle::Address{address};
  copy.data = bundle::Extent{0, size};
  return operation;
}

std::optional<std::vector<Occurrence>> occurrences(std::vector<bundle::Operation> operations) {
  static std::vector<std::unique_ptr<SampleTape>> kept;
  // The sample's folder has no data: the copies get theirs when the tape has been read.
  for (bundle::Operation& operation : operations)
    if (operation.copy) operation.copy->data.reset();
  kept.push_back(std::make_unique<SampleTape>(operations));
  REQUIRE(kept.back()->tape);
  const auto& steps = kept.back()->tape->steps();
  for (std::size_t i = 0; i < steps.size(); i++)
    if (steps[i].copy)
      const_cast<bundle::Copy*>(steps[i].copy)->data = bundle::Extent{0, steps[i].copy->rows.width};
  return occurrences_in(*kept.back()->tape, kept.back()->manifest);
}

template <typename T>
std::string bytes_of_values(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

ValueErrors errors_of(ValueType type, const std::string& expected, const std::string& got,
                      std::uint64_t address = 0x1000) {
  ValueErrors errors;
  add_errors(type, address, expected, got, errors);
  return errors;
}

}  // namespace

TEST_CASE("Launches that are given all that any of them changes can be run in any order") {
  constexpr std::uint64_t IN = SAMPLE_BASE, OUT = SAMPLE_BASE + 64;
  auto in = copy_step(IN, false), out = copy_step(OUT, false), left = copy_step(OUT, true);
  auto found = occurrences({in, out, launch_step(0, 1), left, out, in, launch_step(0, 2), left});
  REQUIRE(found);
  REQUIRE(found->size() == 2);
  CHECK(((*found)[1].step == 6 && (*found)[1].in.size() == 2 && (*found)[1].out.size() == 1));
  CHECK_FALSE(occurrences({in, launch_step(0, 1), left}));  // it is not given what it writes
  CHECK_FALSE(occurrences({in, out, launch_step(0, 1), in, launch_step(0, 1)}));
  CHECK_FALSE(occurrences({launch_step(0, 1)}));
  CHECK_FALSE(occurrences({in, out, left}));
  CHECK_FALSE(occurrences({out, launch_step(0, 1), left, sample_step(Action::drain)}));
  CHECK_FALSE(occurrences({out, launch_step(1, 1), left}));  // refused
  CHECK(occurrences({out, launch_step(0, 1)}));
}

TEST_CASE("A pattern names one kernel") {
  SampleTape sample({launch_step(0, 1), launch_step(1, 1), launch_step(0, 2)});
  REQUIRE(sample.tape);
  CHECK(*kernel_like("add", *sample.tape, sample.manifest) == "_Z3addPfS_");
  CHECK(*kernel_like("_Z3*", *sample.tape, sample.manifest) == "_Z3addPfS_");
  auto both = kernel_like("", *sample.tape, sample.manifest);
  REQUIRE_FALSE(both);
  CHECK(both.error().message == "2 kernels are in the capture: add, nccl");
  CHECK(kernel_like("x", *sample.tape, sample.manifest).error().exit_code == exit_code::NO_TARGET);
}

TEST_CASE("Numbers of all types are read") {
  CHECK(value_of(bytes_of_values({1.5F}).data(), ValueType::f32) == 1.5);
  CHECK(value_of(bytes_of_values({-2.25}).data(), ValueType::f64) == -2.25);
  auto half = [](std::uint16_t bits) {
    return value_of(bytes_of_values({bits}).data(), ValueType::f16);
  };
  CHECK(half(0x3c00) == 1);
  CHECK(half(0xc500) == -5);
  CHECK(half(0x7bff) == 65504);
  CHECK(half(0x0001) == std::ldexp(1, -24));
  CHECK(half(0x0400) == std::ldexp(1, -14));
  CHECK(half(0xfc00) == -HUGE_VAL);
  CHECK(std::isnan(half(0x7e00)));
  CHECK(value_of(bytes_of_values<std::uint16_t>({0x3fc0}).data(), ValueType::bf16) == 1.5);
}

TEST_CASE("Errors are the largest of each kind") {
  auto errors = errors_of(ValueType::f32, bytes_of_values({1.F, 100.F, 0.F, 5.F}),
                          bytes_of_values({1.5F, 101.F, 0.25F, 5.F}));
  CHECK(errors.values == 3);
  CHECK(number_of(errors.absolute) == 1);
  CHECK(number_of(errors.relative) == 0.5);
  CHECK(number_of(errors.scaled) == 0.5);
  CHECK(is_within(errors, 0.5));
  CHECK_FALSE(is_within(errors, 0.4));
  float nan = std::nanf(""), infinite = HUGE_VALF;
  errors = errors_of(ValueType::f32, bytes_of_values({nan, 1.F}), bytes_of_values({1.F, 1.F}));
  CHECK((errors.not_numbers == 1 && !is_within(errors, 1e30)));
  errors = errors_of(ValueType::f32, bytes_of_values({infinite}), bytes_of_values({1.F}));
  CHECK_FALSE(is_within(errors, 1e30));
  errors = errors_of(ValueType::f32, bytes_of_values({0.F}), bytes_of_values({-0.F}));
  CHECK((errors.values == 1 && is_within(errors, 0)));
  ValueErrors all;
  add_errors(errors_of(ValueType::f64, bytes_of_values({2.}), bytes_of_values({3.})), all);
  add_errors(errors_of(ValueType::f64, bytes_of_values({2.}), bytes_of_values({2.5})), all);
  CHECK((number_of(all.absolute) == 1 && all.values == 1));
}

TEST_CASE("Values lie at multiples of their size") {
  std::string expected = "xx" + bytes_of_values({1.F}) + "y",
              got = "ab" + bytes_of_values({2.F}) + "z";
  auto errors = errors_of(ValueType::f32, expected, got, 0x1002);
  CHECK((errors.values == 1 && number_of(errors.absolute) == 1));
  CHECK(errors_of(ValueType::f64, expected, got, 0x1002).values == 0);
  CHECK(errors_of(ValueType::f16, "", "").values == 0);
}

TEST_CASE("A speed-up is the median's, with the range of pairs") {
  auto speed = speed_up({4000, 6000, 8000}, {2000, 2000, 8000});
  REQUIRE(speed);
  CHECK((speed->median == 3 && speed->least == 1 && speed->most == 3));
  CHECK_FALSE(speed_up({}, {1}));
  CHECK_FALSE(speed_up({1}, {0}));
}

TEST_CASE("A round has each occurrence once") {
  auto order = shuffled(5, 3);
  REQUIRE(order.size() == 15);
  for (int round = 0; round < 3; round++) {
    std::vector<std::uint64_t> one(order.begin() + 5 * round, order.begin() + 5 * (round + 1));
    std::sort(one.begin(), one.end());
    CHECK(one == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  }
}
