#include "correlate/gpu_errors.hpp"

#include <catch2/catch_test_macros.hpp>

#include "cudabpf/xid.hpp"

using namespace cudabpf;

namespace {

GpuError traced(std::uint64_t ts, std::string_view message = "Ch 8, MMU Fault") {
  GpuError error = describe_xid(31, "0000:3b:00.0", message);
  error.ts = ts;
  return error;
}

GpuError logged(std::uint64_t ts, std::string_view message = "pid=7, name=x, Ch 8, MMU Fault") {
  GpuError error = describe_xid(31, "0000:3b:00", message);
  error.ts = ts;
  return error;
}

constexpr std::uint64_t LONG = 1'000'000'000;

}  // namespace

TEST_CASE(
    "An error that is reported twice is one, with the time of one report and the process of the "
    "other") {
  std::vector<GpuError> errors;
  GpuErrors pairing([&](const GpuError& error) { errors.push_back(error); });
  SECTION("the tracepoint first") {
    pairing.traced(traced(10));
    CHECK(errors.empty());
    pairing.logged(logged(20));
  }
  SECTION("the log first") {
    pairing.logged(logged(20));
    CHECK(errors.empty());
    pairing.traced(traced(10));
  }
  SECTION("a message that the record has cut") {
    pairing.traced(traced(10, "Ch 8, MMU"));
    pairing.logged(logged(20));
  }
  pairing.settle();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].ts == 10);
  CHECK(errors[0].pid == 7);
  CHECK(errors[0].comm == "x");
  CHECK(errors[0].device == "0000:3b:00.0");
  CHECK(errors[0].message == "Ch 8, MMU Fault");
}

TEST_CASE("An error that is reported once is waited for, and emitted") {
  std::vector<GpuError> errors;
  GpuErrors pairing([&](const GpuError& error) { errors.push_back(error); });
  pairing.traced(traced(10));
  pairing.logged(logged(20, "pid=8, name=y, Ch 9, MMU Fault"));  // another one's
  pairing.settle(30);
  CHECK(errors.empty());
  pairing.settle(LONG);
  REQUIRE(errors.size() == 2);
  CHECK_FALSE(errors[0].pid);
  CHECK(errors[1].pid == 8);
  CHECK(errors[1].device == "0000:3b:00");
  pairing.settle(LONG * 2);
  CHECK(errors.size() == 2);

  // Three of a kind: as many as were reported.
  for (int i = 0; i < 3; i++) pairing.traced(traced(LONG * 3));
  for (int i = 0; i < 3; i++) pairing.logged(logged(LONG * 3));
  CHECK(errors.size() == 5);
}
