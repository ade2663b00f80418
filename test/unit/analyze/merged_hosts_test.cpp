#include "analyze/merged_hosts.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

// Traces of as many hosts.
std::vector<MergedTrace> traces_of(std::uint32_t hosts) {
  std::vector<MergedTrace> merged(hosts);
  for (std::uint32_t i = 0; i < hosts; i++) {
    merged[i].number = i;
    merged[i].host = merged[i].boot_id = "node" + std::to_string(i);
    merged[i].error_ns = 1000;
  }
  return merged;
}

}  // namespace

TEST_CASE("Hosts are named, if they are few") {
  CHECK(hosts_text(traces_of(1)) == "node0");
  CHECK(hosts_text(traces_of(2)) == "node0 and node1");
  CHECK(hosts_text(traces_of(5)) == "node0, node1, node2, node3 and node4");
  CHECK(hosts_text(traces_of(9)) == "node0, node1, node2, node3 and 5 more");
  auto hostile = traces_of(2);
  hostile[1].host = std::string(1 << 20, 'x');
  CHECK(hosts_text(hostile).size() < 200);
}

TEST_CASE("What is said of the order of events is what is known") {
  CHECK_THAT(order_text(traces_of(1)), ContainsSubstring("the order of events is exact"));
  CHECK_THAT(order_text(traces_of(3)), ContainsSubstring("may differ by up to 2.00 µs"));
  auto unknown = traces_of(9);
  for (MergedTrace& one : unknown) {
    one.error_ns = {};
    one.why_unknown = std::string(1 << 20, 'y');
  }
  std::string text = order_text(unknown);
  CHECK_THAT(text, ContainsSubstring("is NOT KNOWN (node0: y") &&
                       ContainsSubstring("; and 5 more): which of two events on different hosts"));
  CHECK(text.size() < 1000);
  CHECK(merged_json(unknown)["order_bound_us"].is_null());
  CHECK(merged_json(traces_of(2))["order_bound_us"] == 2.0);
}
