// What the timeline and the report share: which processes have lanes, and how what is on them
// becomes less where it is too much.
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "analyze/lanes/lane_owners.hpp"
#include "analyze/lanes/merged_rows.hpp"
#include "analyze/merging.hpp"
#include "analyze/timeline/timeline_bars.hpp"

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

struct Nothing {};
using Owners = LaneOwners<Nothing, Nothing, Nothing>;

struct Sum {
  std::uint64_t value = 0;
  void merge(const Sum& next) { value += next.value; }
};

// A launch of thread `tid` of process `pid`, in a stream; and work of a queue of that process.
std::string launch(int pid, int tid, int stream) {
  return fmt::format(
      R"({{"id":1,"type":"kernel","op":"launch","name":"f","ts":5,"pid":{},"tid":{},"stream":"{:#x}"}})"
      "\n",
      pid, tid, stream);
}
std::string work(int pid, int queue) {
  return fmt::format(R"({{"type":"gpu","op":"kernel","ts":9,"pid":{},"device":0,"queue":{}}})"
                     "\n",
                     pid, queue);
}

struct Found {
  LineParser parser;
  Owners owners{{.threads = 3, .streams = 2, .queues = 2}};
  std::size_t no_thread = 0, no_stream = 0, no_queue = 0;

  explicit Found(const std::string& text) {
    auto seen = each_line(parser, text, [this](const Line& line) {
      if (line.kind == LineKind::call) {
        no_thread += !owners.thread_of(line);
        no_stream += !owners.stream_of(line, stream_of(line));
      }
      if (line.kind == LineKind::gpu_operation) no_queue += !owners.queue_of(line);
      owners.seen(line);
    });
  }
};

}  // namespace

TEST_CASE("Items that are far apart become few, too") {
  constexpr std::size_t MAX = 1 << 10;
  MergedRows<Bar> merged(2 * MAX, MAX);
  std::vector<BarRow> rows(3);
  auto each_row = [&](auto&& each) {
    for (BarRow& row : rows) each(row);
  };
  constexpr std::uint64_t END = ~std::uint64_t{0};
  Alike one;
  one.count = 1;
  for (std::uint64_t i = 0; i < 3 * MAX; i++) merged.add(rows[i % 3], {{i, END}, one}, each_row);
  std::size_t bars = 0, calls = 0;
  for (const BarRow& row : rows) {
    bars += row.size();
    for (const Bar& bar : row) calls += bar.total().count;
  }
  CHECK(bars <= 2 * MAX);
  CHECK(calls == 3 * MAX);
}

TEST_CASE("In a series that is too long, each two become one, then each four") {
  MergedSeries<Sum> series(4);
  auto values = [&] {
    std::vector<std::uint64_t> all;
    for (const Sum& sum : series.items()) all.push_back(sum.value);
    return all;
  };
  using Values = std::vector<std::uint64_t>;
  for (std::uint64_t i = 1; i <= 4; i++) series.add({i});
  CHECK(values() == Values{1, 2, 3, 4});
  series.add({5});
  CHECK(values() == Values{3, 7, 5});
  for (std::uint64_t i = 6; i <= 9; i++) series.add({i});
  CHECK(values() == Values{10, 26, 9});
  std::vector<Sum> odd = {{1}, {2}, {3}};
  merge_pairs(odd);
  CHECK(odd.size() == 2);
  CHECK(odd[1].value == 3);
}

TEST_CASE("Threads, streams and queues are kept apart up to a number") {
  Found found(launch(1, 1, 5) + launch(1, 2, 5) + launch(2, 1, 5) + launch(3, 1, 5) +
              launch(1, 2, 5) + work(2, 1) + work(2, 0) + work(2, 7) + work(8, 1) + work(2, 1));
  CHECK(found.no_thread == 1);
  CHECK(found.no_stream == 1);
  CHECK(found.no_queue == 2);
  const auto& processes = found.owners.processes();
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].threads == std::vector<std::size_t>{0, 1});
  CHECK(processes[0].streams == std::vector<std::size_t>{0});
  CHECK(processes[1].queues == std::vector<std::size_t>{1, 0});  // by their numbers
  CHECK(found.owners.queues()[1].key.queue == 0);
}

TEST_CASE("A process whose GPU worked before its first call is one with it") {
  Found found(work(7, 1) + launch(7, 1, 5) +
              R"({"type":"process","op":"exec","ts":20,"pid":7,"comm":"later"})"
              "\n"
              R"({"type":"process","op":"exit","ts":30,"pid":7,"comm":"last"})"
              "\n" +
              launch(7, 1, 5));
  const auto& processes = found.owners.processes();
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].number == 1);
  CHECK(found.parser.names().text(processes[0].comm) == "later");
  CHECK(processes[0].queues.size() == 1);
  CHECK(processes[0].threads.size() == 1);
  CHECK(processes[1].number == 2);
}
