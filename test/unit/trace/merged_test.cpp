#include "trace/merged.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "trace/header.hpp"
#include "wrong_values.hpp"

using namespace cudabpf;

namespace {

// With something in each field.
MergedTrace full() {
  MergedTrace one;
  one.file = "a \"b\".jsonl";
  one.host = "node2";
  one.number = 1;
  one.boot_id = "0c9b2f4e";
  one.rank = {{"RANK", 5}, {"WORLD_SIZE", 8}};
  one.alignment = Alignment::time_of_day;
  one.offset_ns = 17;
  one.error_ns = 1000;
  one.bound_ns = 3000;
  one.why_unknown = "its clock is not synchronised";
  one.since_ns = 4;
  one.duration_ns = 99;
  one.calls = 12;
  one.accounts = {{20, 19, 1, 19}};
  one.losses = {{"ring_full_entry", 7}, {"of_a_newer_version", 1}};
  one.cut_off = {"a.jsonl: it has no end"};
  one.missing = {"part 2"};
  one.malformed = 3;
  one.repeated = 8;
  return one;
}

MergedTrace with(const std::string& boot, std::optional<std::uint64_t> error) {
  MergedTrace one;
  one.boot_id = boot;
  one.error_ns = error;
  return one;
}

}  // namespace

TEST_CASE("What a header says of merged traces is read back") {
  MergedTrace least;
  std::vector<MergedTrace> merged = {full(), least};
  auto header = header_in(header_line({}, {}, merged));
  REQUIRE(header);
  CHECK(header->merged == merged);
  CHECK(header_in(header_line({}, {}))->merged.empty());
}

TEST_CASE("What a merged trace has of another type, it does not have") {
  nlohmann::json whole = nlohmann::json::parse(header_line({}, {}, {full()}));
  std::size_t seen = 0;
  each_wrong_type(nlohmann::json{{"merged", whole["merged"]}},
                  [&](const std::string& what, const auto& wrong, const auto& without) {
                    INFO(what);
                    seen++;
                    CHECK(header_in(wrong)->merged == header_in(without)->merged);
                  });
  CHECK(seen > 100);
}

TEST_CASE("A header cannot say of more hosts than are kept apart") {
  nlohmann::json list = nlohmann::json::array();
  for (unsigned i = 0; i < 1000; i++) list.push_back({{"number", i % 70}});
  auto merged = header_in(nlohmann::json{{"merged", list}}.dump())->merged;
  CHECK(merged.size() == MAX_MERGED);
  CHECK(hosts_of(merged).size() == MAX_HOSTS);
}

TEST_CASE("Orders are known as far as the two worst clocks allow") {
  CHECK(order_bound({}) == OrderBound{true, 0});
  CHECK(order_bound({with("a", 5)}) == OrderBound{true, 0});
  CHECK(order_bound({with("a", 5), with("a", 5)}) == OrderBound{true, 0});
  CHECK(order_bound({with("a", {}), with("a", {})}) == OrderBound{true, 0});
  CHECK(order_bound({with("a", 5), with("b", 90), with("c", 70)}) == OrderBound{true, 160});
  CHECK(order_bound({with("a", 5), with("", 90), with("", 70)}) == OrderBound{true, 160});
  CHECK(order_bound({with("a", 5), with("b", {})}) == OrderBound{false, 0});
  CHECK(order_bound({with("a", ~std::uint64_t{0}), with("b", 5)}).ns == ~std::uint64_t{0});
}
