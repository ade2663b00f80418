#include "analyze/collectives/collectives.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"
#include "support/collective_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

struct Answered {
  LineParser parser;
  Collectives collectives;
  std::unique_ptr<DerivedFields> seen;

  explicit Answered(const std::string& text, Part part = {})
      : collectives(parser.names(), part),
        seen(each_line(parser, text, [&](const Line& line) { show(line, part, collectives); })) {
    collectives.finish({});
  }
  const std::vector<Collectives::Row>& rows() const { return collectives.rows(); }
  const CollectiveRuns::Books& books() const { return collectives.runs().books(); }
  Json json() const { return collectives_json(collectives); }
};

SampleCollective of(const std::string& op, std::uint64_t size, const std::string& more = "") {
  SampleCollective one;
  one.op = op;
  one.size = size;
  one.more = more;
  return one;
}
SampleCollective in_group(const std::string& op, int group) {
  return of(op, 1 << 20, fmt::format(R"(,"call_group":{})", group));
}

}  // namespace

TEST_CASE("A collective has the time of the kernel that its call launched") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 4);
  ranks.collective(1, 1, 100, 200, 1000);
  ranks.collective(1, 2, 1300, 1400, 3000);
  ranks.collective(1, 3, 5000, 5100, 40, of("all_reduce", 1024));
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 2);
  const auto& row = answered.rows()[0];
  CHECK(row.name == "all_reduce");
  CHECK(row.communicator == 1);
  CHECK(row.size == 1 << 20);
  CHECK(row.count == 2);
  CHECK(row.gpu.total() == 4000 * US);
  CHECK(row.gpu.min() == 1000 * US);
  CHECK(row.hidden == 0);
  CHECK(row.exposed() == 4000 * US);
  CHECK(row.host.total() == 10 * US);
  CHECK(answered.books().without_kernel == 0);
  CHECK(answered.books().unjoined == 0);
}

TEST_CASE("Bandwidths are those of NCCL's formulas, and small messages have none") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 4);
  int seq = 0;
  for (const char* op :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send"}) {
    seq++;
    auto at = static_cast<std::uint64_t>(seq) * 10'000;
    ranks.collective(1, seq, at, at + 10, 1000, of(op, 1'000'000));
  }
  ranks.collective(1, 7, 80'000, 80'010, 1000, of("reduce", 8191));
  Json rows = Answered(ranks.text).json()["collectives"];
  auto rates = [&](std::string_view op) {
    for (const Json& row : rows)
      if (row["function"] == op)
        return std::pair(row.value("algorithm_bytes_per_second", 0.0),
                         row.value("bus_bytes_per_second", 0.0));
    return std::pair(-1.0, -1.0);
  };
  CHECK(rates("all_reduce") == std::pair(1e9, 1.5e9));
  CHECK(rates("all_gather") == std::pair(4e9, 3e9));
  CHECK(rates("reduce_scatter") == std::pair(4e9, 3e9));
  CHECK(rates("all_to_all") == std::pair(4e9, 3e9));
  CHECK(rates("broadcast") == std::pair(1e9, 1e9));
  CHECK(rates("send") == std::pair(1e9, 1e9));
  CHECK(rates("reduce") == std::pair(0.0, 0.0));
}

TEST_CASE("Without the number of ranks, only what does not depend on it has a bandwidth") {
  SampleRanks ranks;
  ranks.collective(1, 1, 100, 200, 1000);
  ranks.collective(1, 2, 2000, 2100, 500, of("broadcast", 1 << 20));
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 2);
  CHECK_FALSE(answered.rows()[0].bus_bytes);
  CHECK(answered.rows()[1].bus_bytes == 1 << 20);
}

TEST_CASE("What a GPU does meanwhile hides a collective, and counts once") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  ranks.compute(1, 150, 100);   // 50 of it at the same time
  ranks.compute(1, 220, 50);    // overlaps the first: 20 more
  ranks.compute(1, 1000, 400);  // 200 of it
  ranks.compute(1, 5000, 10);
  ranks.kernel(2, ranks.launch(2, 200), 200, 1000, "gemm");  // of another process
  ranks.collective(1, 1, 100, 200, 1000);
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].hidden == (70 + 200) * US);
  CHECK(answered.rows()[0].exposed() == 730 * US);
  auto gpus = answered.collectives.runs().gpus();
  REQUIRE(gpus.size() == 1);
  CHECK(gpus[0]->collectives.total() == 1000 * US);
  CHECK(gpus[0]->hidden() == 270 * US);
  CHECK(gpus[0]->exposed() == 730 * US);
}

TEST_CASE("A group is a row of its own, and its time is not divided") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  for (int i = 1; i <= 3; i++) ranks.call(1, i, 100, in_group("send", 9));
  for (int i = 1; i <= 3; i++) ranks.call(1, i, 100, in_group("recv", 9));
  int end = ++ranks.ids;
  int first = ranks.launch(1, 130, fmt::format(R"(,"within":{})", end));
  int second = ranks.launch(1, 131, fmt::format(R"(,"within":{})", end));
  ranks.kernel(1, first, 150, 100, "ncclDevKernel_SendRecv");  // its call has not returned yet
  ranks.end_group(end, 1, 9, 120);
  ranks.kernel(1, second, 200, 100, "ncclDevKernel_SendRecv");
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  const auto& row = answered.rows()[0];
  CHECK(row.name == "recv x3, send x3");
  CHECK(row.count == 1);
  CHECK(row.size == 6 << 20);
  CHECK(row.gpu.total() == 150 * US);
  CHECK(row.host.total() == 30 * US);
  CHECK_FALSE(row.bus_bytes);
}

TEST_CASE("A group with one collective is like that collective alone") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  ranks.call(1, 1, 100, in_group("all_reduce", 9));
  int end = ranks.group_end(1, 9, 110);
  ranks.kernel(1, ranks.launch(1, 112, fmt::format(R"(,"within":{})", end)), 150, 100, "ncclX");
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].name == "all_reduce");
  CHECK(answered.rows()[0].gpu.total() == 100 * US);
}

TEST_CASE("A group of one thread for several GPUs has a run for each communicator") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2, "0xabc", R"(,"device":0)", 5);
  ranks.communicator(2, 1, 2, "0xabc", R"(,"device":1)", 5);
  auto queued = [&](int number, const std::string& stream) {
    SampleCollective one = in_group("all_reduce", 4);
    one.stream = stream;
    ranks.call(number, 1, 100, one);
  };
  queued(1, "0x10");
  queued(2, "0x20");
  int end = ranks.group_end(1, 4, 110);
  auto within = fmt::format(R"(,"within":{})", end);
  ranks.kernel(1, ranks.launch(1, 111, within, "0x10"), 200, 300, "ncclX", "0x10");
  ranks.kernel(1, ranks.launch(1, 112, within, "0x20"), 250, 100, "ncclX", "0x20",
               R"(,"device":1)");
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 2);
  CHECK(answered.rows()[0].communicator == 1);
  CHECK(answered.rows()[0].gpu.total() == 300 * US);
  CHECK(answered.rows()[1].communicator == 2);
  CHECK(answered.rows()[1].gpu.total() == 100 * US);
}

TEST_CASE("A copy that a collective makes is its own, and a function's inner call is not counted") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  int outer = ++ranks.ids, inner = ++ranks.ids;
  ranks.line(
      R"({{"id":{},"type":"transfer","op":"DtoD","name":"cuMemcpyAsync","ts":110000,"duration_us":1.000,"pid":1,"tid":1,"ret":0,"size":64,"stream":"0x0","async":true,"within":{}}})",
      ++ranks.ids, inner);
  ranks.line(
      R"({{"id":{},"type":"collective","op":"broadcast","name":"ncclBroadcast","library":"nccl","layer":1,"ts":105000,"duration_us":9.000,"pid":1,"tid":1,"ret":0,"size":64,"parent":{}}})",
      inner, outer);
  ranks.line(
      R"({{"id":{},"type":"collective","op":"broadcast","name":"ncclBcast","library":"nccl","layer":1,"ts":100000,"duration_us":20.000,"pid":1,"tid":1,"ret":0,"size":64,"communicator":1,"seq":1}})",
      outer);
  ranks.line(
      R"({{"type":"gpu","op":"copy","ts":200000,"duration_us":70.000,"pid":1,"call":{},"size":64,"stream":"0x0","device":0,"direction":"DtoD"}})",
      ranks.ids);
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].count == 1);
  CHECK(answered.rows()[0].gpu.total() == 70 * US);
  CHECK(answered.books().unjoined == 0);
}

TEST_CASE("Captured collectives run at each launch of their graph") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  int a = ranks.call(1, 1, 100, of("all_reduce", 4096, R"(,"captured":true)"));
  int b = ranks.call(1, 2, 110, of("all_gather", 4096, R"(,"captured":true)"));
  ranks.text += content_line(7, 3, 3, kernel_nodes("ncclX", "2") + "," + kernel_nodes("gemm", "1"),
                             fmt::format(R"(,"collectives":[{},{}])", a, b));
  for (std::uint64_t at : {1000, 2000, 3000}) {
    int launch = ++ranks.ids;
    ranks.text += graph_launch(launch, static_cast<int>(at * US), of_graph(7));
    ranks.kernel(1, launch, at + 300, 30, "ncclX");  // in no order
    ranks.kernel(1, launch, at + 100, 50, "ncclX");
    ranks.kernel(1, launch, at + 200, 50, "gemm");
  }
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 2);
  CHECK(answered.rows()[0].name == "all_reduce");
  CHECK(answered.rows()[0].count == 3);
  CHECK(answered.rows()[0].in_graphs == 3);
  CHECK(answered.rows()[0].gpu.total() == 150 * US);
  CHECK(answered.rows()[1].name == "all_gather");
  CHECK(answered.rows()[1].gpu.total() == 90 * US);
  CHECK(answered.books().captured == 2);
}

TEST_CASE("If a graph has other kernels than collectives, its collectives stay together") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  int a = ranks.call(1, 1, 100, of("all_reduce", 4096, R"(,"captured":true)"));
  int b = ranks.call(1, 2, 110, of("all_gather", 4096, R"(,"captured":true)"));
  ranks.text += content_line(7, 1, 1, kernel_nodes("ncclX", "1"),
                             fmt::format(R"(,"collectives":[{},{}])", a, b));
  ranks.text += graph_launch(9, 1'000'000, of_graph(7));
  ranks.kernel(1, 9, 1100, 50, "ncclX");
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].name == "all_gather, all_reduce");
  CHECK(answered.rows()[0].gpu.total() == 50 * US);
}

TEST_CASE("Kernels that another thread launched belong to the calls of their stream, in order") {
  for (bool fits : {true, false}) {
    SampleRanks ranks;
    ranks.communicator(1, 0, 2);
    SampleCollective one = of("all_reduce", 4096);
    one.ret = 7;
    one.stream = "0x10";
    ranks.call(1, 1, 100, one);
    one.size = 8;
    ranks.call(1, 2, 200, one);
    ranks.kernel(1, ranks.launch(1, 300, "", "0x10"), 400, 50, "ncclDevKernel_X", "0x10");
    if (fits) ranks.kernel(1, ranks.launch(1, 310, "", "0x10"), 500, 20, "ncclSymk_X", "0x10");
    Answered answered(ranks.text);
    REQUIRE(answered.rows().size() == 2);
    CHECK(answered.rows()[0].gpu.total() == (fits ? 50 * US : 0));
    CHECK(answered.rows()[1].gpu.total() == (fits ? 20 * US : 0));
    CHECK(answered.books().unjoined == (fits ? 0 : 1));
    CHECK(answered.books().unjoined_time == (fits ? 0 : 50 * US));
    CHECK(answered.books().without_kernel == (fits ? 0 : 2));
  }
}

TEST_CASE("A failed call counts as none, and what is outside of the part as nothing") {
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  SampleCollective failed;
  failed.ret = 4;
  ranks.call(1, 0, 50, failed);
  ranks.collective(1, 1, 100, 200, 1000);
  ranks.collective(1, 2, 5000, 5100, 70);
  Answered answered(ranks.text, {5000 * US, 6000 * US});
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].gpu.total() == 70 * US);
  CHECK(answered.collectives.runs().gpus()[0]->collectives.total() == 70 * US);
  CHECK(answered.books().failed == 1);
}

TEST_CASE("A trace without GPU times has those of the calls, and says so") {
  SampleRanks ranks;
  ranks.call(1, 1, 100);
  Answered answered(ranks.text);
  REQUIRE(answered.rows().size() == 1);
  CHECK(answered.rows()[0].host.total() == 5 * US);
  CHECK(answered.json()["times"] == "host");
  CHECK(answered.books().without_kernel == 0);
}

TEST_CASE("Operations that come too late are in the times, but not in what they hide") {
  std::string text;
  LineParser parser;
  std::vector<CollectiveRun> taken;
  CollectiveRuns::Bounds bounds;
  bounds.operations = 4;
  CollectiveRuns runs(
      parser.names(), {}, [&](const CollectiveRun& run) { taken.push_back(run); }, bounds);
  SampleRanks ranks;
  ranks.communicator(1, 0, 2);
  for (int i = 0; i < 4; i++) ranks.compute(1, 1000 + static_cast<std::uint64_t>(i) * 100, 100);
  ranks.collective(1, 1, 100, 200, 50);
  auto seen = each_line(parser, ranks.text, [&](const Line& line) { runs.line(line); });
  runs.finish({});
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].gpu.time == 50 * US);
  CHECK(runs.books().late == 1);
}

TEST_CASE("Kinds of collectives that are too many are one row, and no figure is lost") {
  constexpr int KINDS = 5000;
  SampleRanks ranks;
  for (int i = 1; i <= KINDS; i++)
    ranks.collective(1, i, static_cast<std::uint64_t>(i) * 100, static_cast<std::uint64_t>(i) * 100,
                     10, of("all_reduce", static_cast<std::uint64_t>(i)));
  Answered answered(ranks.text);
  CHECK(answered.rows().size() == 4097);
  std::uint64_t count = 0, time = 0;
  for (const auto& row : answered.rows()) {
    count += row.count;
    time += row.gpu.total();
  }
  CHECK(count == KINDS);
  CHECK(time == KINDS * 10 * US);
}

TEST_CASE("What waits for its kernels is bounded: the oldest is passed on without them") {
  LineParser parser;
  std::vector<CollectiveRun> taken;
  CollectiveRuns::Bounds bounds;
  bounds.runs = 2;
  CollectiveRuns runs(
      parser.names(), {}, [&](const CollectiveRun& run) { taken.push_back(run); }, bounds);
  SampleRanks ranks;
  for (int i = 1; i <= 3; i++)
    ranks.collective(1, i, static_cast<std::uint64_t>(i) * 100, static_cast<std::uint64_t>(i) * 100,
                     10);
  auto seen = each_line(parser, ranks.text, [&](const Line& line) { runs.line(line); });
  runs.finish({});
  REQUIRE(taken.size() == 3);
  CHECK_FALSE(taken[0].measured());
  CHECK(taken[1].measured());
  CHECK(taken[2].measured());
  CHECK(runs.books().without_kernel == 1);
  CHECK(runs.books().unjoined == 1);
}

TEST_CASE("The ranks of a communicator that was split off follow from all of the other's") {
  SampleRanks ranks;
  auto split = [&](int number, int from, int color, int key) {
    ranks.line(
        R"({{"type":"collective","op":"comm","ts":2,"pid":{0},"communicator":{0},"identity":"0x{1}0","from":{2},"ordinal":1,"color":{1},"key":{3}}})",
        number, color, from, key);
  };
  for (int rank = 0; rank < 4; rank++) ranks.communicator(1 + rank, rank, 4);
  split(11, 1, 5, 3);
  split(12, 2, 6, 0);
  split(13, 3, 5, 1);
  split(14, 4, 5, 1);
  SECTION("all are there") {
    Answered answered(ranks.text + "");
    auto rank = [&](std::uint64_t number) {
      const TracedCommunicator* one = answered.collectives.runs().communicators().find(number);
      REQUIRE(one);
      CHECK(one->rank_worked_out == (one->rank.has_value()));
      return std::pair(one->rank.value_or(99), one->ranks.value_or(99));
    };
    CHECK(rank(13) == std::pair(0u, 3u));
    CHECK(rank(14) == std::pair(1u, 3u));
    CHECK(rank(11) == std::pair(2u, 3u));
    CHECK(rank(12) == std::pair(0u, 1u));
  }
  SECTION("one of the ranks was not recorded") {
    std::string text = ranks.text;
    std::size_t at = text.find(R"({"type":"collective","op":"comm","ts":1,"pid":4,)");
    text.erase(at, text.find('\n', at) + 1 - at);
    Answered answered(text);
    for (std::uint64_t number : {11, 12, 13, 14})
      CHECK_FALSE(answered.collectives.runs().communicators().find(number)->rank);
  }
}
