#include "cli/request/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "cudabpf/abi.h"
#include "support/units.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

namespace {

constexpr std::uint64_t K = 1024;

struct Case {
  const char* text;
  std::uint64_t value;
};

// What is no quantity of either kind.
constexpr const char* NONSENSE[] = {
    "",
    " ",
    "-",
    "many",
    "M",
    "s",
    "-1",
    "-64K",
    "0",
    "0K",
    "-0",
    "0ms",
    "5 ",
    "5 M",
    "5 s",
    "5KB",
    "5kib",
    "5S",
    "5Ms",
    "1,5",
    "1e",
    "1e400",
    "-1e400",
    "inf",
    "nan",
    "infinity",
    "1.5.2",
    "10M10M",
    "9223372036854775808",
    "1e19",
    "1e18d",
    "1e18G",
};

// "--duration 5x: not a quantity", or one of the other reasons, and nothing else.
bool refuses(const std::string& message, const std::string& flag, const std::string& text) {
  constexpr const char* REASONS[] = {"not a quantity", "must be more than 0", "too small",
                                     "too large"};
  return std::any_of(std::begin(REASONS), std::end(REASONS), [&](const char* reason) {
    return message == fmt::format("{} {}: {}", flag, text, reason);
  });
}

}  // namespace

TEST_CASE("A size is a number of bytes, or of units of 1024") {
  for (const Case& c : {Case{"1", 1},
                        {"4096", 4096},
                        {"64K", 64 * K},
                        {"64k", 64 * K},
                        {"64KiB", 64 * K},
                        {"32M", 32 * K * K},
                        {"32m", 32 * K * K},
                        {"32MiB", 32 * K * K},
                        {"2G", 2 * K * K * K},
                        {"2g", 2 * K * K * K},
                        {"2GiB", 2 * K * K * K},
                        {"1.5G", 3 * K * K * K / 2},
                        {".5K", 512},
                        {"1.9", 1},
                        {"9e18", 9'000'000'000'000'000'000}}) {
    CAPTURE(c.text);
    auto size = parse_size(c.text, "--ring-size");
    REQUIRE(size);
    CHECK(*size == c.value);
  }
}

TEST_CASE("A duration is a number of seconds, or of the unit that follows it") {
  for (const Case& c : {Case{"90", 90 * SECOND},
                        {"90s", 90 * SECOND},
                        {"0.25", SECOND / 4},
                        {"500ms", SECOND / 2},
                        {"20us", 20'000},
                        {"20µs", 20'000},
                        {"7ns", 7},
                        {"15m", 15 * 60 * SECOND},
                        {"2h", 2 * 3600 * SECOND},
                        {"1.5h", 5400 * SECOND},
                        {"1d", 86400 * SECOND},
                        {"9e9", 9'000'000'000 * SECOND}}) {
    CAPTURE(c.text);
    auto time = parse_duration(c.text, "--duration");
    REQUIRE(time);
    CHECK(*time == c.value);
  }
}

TEST_CASE("A sample's period is a number of milliseconds, between 20 and a minute") {
  for (const Case& c : {Case{"100", SECOND / 10},
                        {"20", SECOND / 50},
                        {"20ms", SECOND / 50},
                        {"2s", 2 * SECOND},
                        {"60000", 60 * SECOND}}) {
    CAPTURE(c.text);
    auto period = parse_sample_period(c.text);
    REQUIRE(period);
    CHECK(*period == c.value);
  }
  for (const char* text : {"19", "19.9ms", "61s", "1e9", "5us", "1m", "true", "", "-100", "nan"}) {
    CAPTURE(text);
    auto period = parse_sample_period(text);
    REQUIRE_FALSE(period);
    CHECK(period.error().message.starts_with("--sample"));
    CHECK(period.error().exit_code == exit_code::USAGE);
  }
}

TEST_CASE("What is wrong with a quantity is said") {
  for (const auto& [text, why] :
       std::initializer_list<std::pair<const char*, const char*>>{{"many", "not a quantity"},
                                                                  {"5 s", "not a quantity"},
                                                                  {"inf", "not a quantity"},
                                                                  {"0", "must be more than 0"},
                                                                  {"-5s", "must be more than 0"},
                                                                  {"0.1ns", "too small"},
                                                                  {"1e18d", "too large"}})
    CHECK(parse_duration(text, "--duration").error().message ==
          fmt::format("--duration {}: {}", text, why));
}

TEST_CASE("What is no quantity is refused, in the words of its flag") {
  for (const char* text : NONSENSE) {
    CAPTURE(text);
    auto size = parse_size(text, "--rotate-size");
    REQUIRE_FALSE(size);
    CHECK(refuses(size.error().message, "--rotate-size", text));
    CHECK(size.error().hint == "give it as 64M, 512K or 1G");
    CHECK(size.error().exit_code == exit_code::USAGE);
    auto time = parse_duration(text, "--duration");
    REQUIRE_FALSE(time);
    CHECK(refuses(time.error().message, "--duration", text));
    CHECK(time.error().hint == "give it as 200ms, 30s, 15m, 2h or a number of seconds");
    CHECK(time.error().exit_code == exit_code::USAGE);
  }
  // Less than one would become 0, which means "no limit".
  CHECK_FALSE(parse_size("0.4", "--rotate-size"));
  CHECK_FALSE(parse_duration("0.4ns", "--duration"));
  // Each has its own units.
  for (const char* text : {"1h", "1d", "1ms", "1s"}) CHECK_FALSE(parse_size(text, "--ring-size"));
  for (const char* text : {"1K", "1M", "1G", "1MiB"})
    CHECK_FALSE(parse_duration(text, "--duration"));
}

TEST_CASE("The ring is a power of two, in which every record fits") {
  REQUIRE(parse_ring_size("32M"));
  CHECK(*parse_ring_size("32M") == 32 * K * K);
  CHECK(*parse_ring_size("1G") == K * K * K);
  for (const char* text : {"3M", "33554433", "2G", "1.5G", "9e18"}) {
    CAPTURE(text);
    auto size = parse_ring_size(text);
    REQUIRE_FALSE(size);
    CHECK(size.error().message ==
          "--ring-size " + std::string(text) + ": not a power of two up to 1G");
    CHECK(size.error().exit_code == exit_code::USAGE);
  }
  auto tiny = parse_ring_size("1");
  REQUIRE_FALSE(tiny);
  CHECK(tiny.error().message == "--ring-size 1: the largest records would never fit");
  // The least that the hint names is taken, and fits the longest string; half of it is not.
  std::string hint = tiny.error().hint;
  REQUIRE(hint.starts_with("the least is "));
  std::string least = hint.substr(13, hint.find(';') - 13);
  REQUIRE(parse_ring_size(least));
  CHECK(*parse_ring_size(least) > CB_LONG_STRING);
  auto half = parse_ring_size(std::to_string(*parse_ring_size(least) / 2));
  REQUIRE_FALSE(half);
  CHECK(half.error().message.ends_with("the largest records would never fit"));
  CHECK(parse_ring_size("x").error().message == "--ring-size x: not a quantity");
}
