#include "cli/request/quantities.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "cudabpf/abi.h"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// Parses a number and one of `units`; the first unit is what a bare number means.
Result<std::uint64_t> parse_quantity(const std::string& text, const std::string& flag,
                                     std::initializer_list<std::pair<const char*, double>> units,
                                     const char* example) {
  auto refused = [&](const char* why) {
    return Error{fmt::format("{} {}: {}", flag, text, why), fmt::format("give it as {}", example),
                 exit_code::USAGE};
  };
  Error wrong = refused("not a quantity");
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    return wrong;
  }
  std::string unit = text.substr(used);
  for (const auto& [name, factor] : units) {
    if (unit != name) continue;
    double value = number * factor;
    if (!std::isfinite(value)) return wrong;
    if (value < 1) return refused(value > 0 ? "too small" : "must be more than 0");
    if (value > 9e18) return refused("too large");
    return static_cast<std::uint64_t>(value);
  }
  return wrong;
}

constexpr std::uint64_t MAX_RING = 1ULL << 30;

// The smallest ring that holds the largest record, a call with the longest string that is read, and
// the head that the kernel puts before it. In a smaller one no long string would ever arrive.
std::uint64_t min_ring() {
  constexpr std::uint64_t RING_HEAD = 8, WORD = 8;
  constexpr std::uint64_t LARGEST =
      RING_HEAD + sizeof(abi::cb_head) + CB_PLAIN_ARGS * WORD + CB_LONG_STRING;
  return std::max(std::bit_ceil(LARGEST), static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text, const std::string& flag) {
  constexpr double K = 1024;
  return parse_quantity(text, flag,
                        {{"", 1},
                         {"K", K},
                         {"k", K},
                         {"KiB", K},
                         {"M", K * K},
                         {"m", K * K},
                         {"MiB", K * K},
                         {"G", K * K * K},
                         {"g", K * K * K},
                         {"GiB", K * K * K}},
                        "64M, 512K or 1G");
}

Result<std::uint64_t> parse_duration(const std::string& text, const std::string& flag) {
  return parse_quantity(text, flag,
                        {{"", 1e9},
                         {"s", 1e9},
                         {"ms", 1e6},
                         {"us", 1e3},
                         {"µs", 1e3},
                         {"ns", 1},
                         {"m", 60e9},
                         {"h", 3600e9},
                         {"d", 86400e9}},
                        "200ms, 30s, 15m, 2h or a number of seconds");
}

Result<std::uint64_t> parse_sample_period(const std::string& text) {
  constexpr std::uint64_t SHORTEST = 20'000'000, LONGEST = 60'000'000'000;
  constexpr const char* EXAMPLE = "20, 100, 500ms or 10s";
  auto period =
      TRY(parse_quantity(text, "--sample", {{"", 1e6}, {"ms", 1e6}, {"s", 1e9}}, EXAMPLE));
  if (period < SHORTEST || period > LONGEST)
    return Error{fmt::format("--sample={}: not between 20 ms and 60 s", text),
                 fmt::format("give it as {}", EXAMPLE), exit_code::USAGE};
  return period;
}

Result<std::uint64_t> parse_ring_size(const std::string& text) {
  auto size = TRY(parse_size(text, "--ring-size"));
  if (size < min_ring())
    return Error{fmt::format("--ring-size {}: the largest records would never fit", text),
                 fmt::format("the least is {}K; 4M, 32M or 128M lose less", min_ring() / 1024),
                 exit_code::USAGE};
  if (size > MAX_RING || !std::has_single_bit(size))
    return Error{fmt::format("--ring-size {}: not a power of two up to 1G", text),
                 "give it as 4M, 32M or 128M", exit_code::USAGE};
  return size;
}

}  // namespace cudabpf::cli
