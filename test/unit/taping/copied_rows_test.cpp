#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "cudabpf/taping.h"
#include "taping/copied_rows.hpp"

using namespace cudabpf;
using namespace cudabpf::taping;

namespace {

constexpr std::uint64_t HOST = 0x7e0000000000, DEVICE = 0x7f0000000000;

abi::ci_rows to_gpu() {
  abi::ci_rows rows{};
  rows.from.x = 8;
  rows.from.y = 1;
  rows.from.z = 2;
  rows.from.type = abi::CI_ON_HOST;
  rows.from.host = HOST;
  rows.from.pitch = 64;
  rows.from.height = 10;
  rows.to.type = abi::CI_ON_DEVICE;
  rows.to.host = 1;
  rows.to.device = DEVICE;
  rows.width = 48;
  rows.height = 5;
  rows.depth = 3;
  return rows;
}

std::string given(const abi::ci_rows& rows) {
  return {reinterpret_cast<const char*>(&rows), sizeof(rows)};
}

std::string fault_of(const abi::ci_rows& rows) {
  auto copied = copied_rows(given(rows));
  return copied ? "" : copied.error().message;
}

}  // namespace

TEST_CASE("Copied rows lie where the struct's places, distances and heights say") {
  auto copied = copied_rows(given(to_gpu()));
  REQUIRE(copied);
  CHECK(copied->from_host);
  CHECK_FALSE(copied->to_host);
  CHECK(copied->from.address->value == HOST + 2 * 640 + 64 + 8);
  CHECK(copied->from.pitch == 64);
  CHECK(copied->from.slice == 640);
  CHECK(copied->to.address->value == DEVICE);
  CHECK(copied->to.pitch == 48);
  CHECK(copied->to.slice == 240);
  CHECK(bundle::extent_of(copied->rows, copied->from) == 2 * 640 + 4 * 64 + 48);
}

TEST_CASE("A single row has no distances, and none at all is no copy") {
  auto rows = to_gpu();
  rows.height = rows.depth = 1;
  CHECK(copied_rows(given(rows))->from.pitch == 0);
  rows.width = 0;
  rows.from.type = 77;
  CHECK(copied_rows(given(rows))->rows.is_empty());
}

TEST_CASE("Rows that cannot be are no copy") {
  auto rows = to_gpu();
  rows.to.type = abi::CI_ARRAY;
  CHECK(fault_of(rows) == "is of an array");
  rows.to.type = abi::CI_UNIFIED;  // the library inside resolves these
  CHECK(fault_of(rows) == "is of an array");
  rows = to_gpu();
  rows.width = ~0ULL;
  CHECK(fault_of(rows) == "has no range of addresses");
  rows = to_gpu();
  rows.from.pitch = 1ULL << 63;
  CHECK(fault_of(rows) == "has no range of addresses");
  CHECK(copied_rows("short")->rows.is_empty());
}
