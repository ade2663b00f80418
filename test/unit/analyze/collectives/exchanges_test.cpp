#include "analyze/collectives/exchanges.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include "support/collective_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/judged_ranks.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// A send or a receive of `size` bytes, and whatever else a line has.
SampleCollective between_two(const std::string& op, int peer, std::uint64_t size = 1 << 20,
                             const std::string& more = "") {
  return {op, size, fmt::format(R"(,"peer":{}{})", peer, more), "0x0", 0};
}

constexpr int PERIOD_US = 20'000;
std::uint64_t begin_of(int step) { return static_cast<std::uint64_t>(step) * PERIOD_US; }

// The rank whose communicator has the number r + 1 is r.
SampleRanks ranks_of(int count) {
  SampleRanks sample;
  for (int rank = 0; rank < count; rank++) sample.communicator(1 + rank, rank, count);
  return sample;
}

// Each rank of some sends to and receives from others, in a group, by one kernel.
class Groups {
 public:
  explicit Groups(SampleRanks& sample) : sample_(sample) {}

  void run(int rank, int step, std::vector<int> to, std::vector<int> from, std::uint64_t time) {
    std::string in_group = fmt::format(R"(,"call_group":{})", ++groups_);
    std::uint64_t at = begin_of(step);
    for (int peer : to)
      sample_.call(1 + rank, step, at, between_two("send", peer, 1 << 20, in_group));
    for (int peer : from)
      sample_.call(1 + rank, step, at, between_two("recv", peer, 1 << 20, in_group));
    int end = sample_.group_end(1 + rank, groups_, at);
    int launch = sample_.launch(1 + rank, at, fmt::format(R"(,"within":{})", end));
    sample_.kernel(1 + rank, launch, at, time, "ncclDevKernel_SendRecv");
  }

 private:
  SampleRanks& sample_;
  int groups_ = 0;
};

// Rank 0 sends to rank 1 in each step, and their kernels take so long.
SampleRanks sends(int count, std::uint64_t send_us, std::uint64_t receive_us) {
  SampleRanks sample = ranks_of(2);
  for (int step = 1; step <= count; step++) {
    sample.collective(1, step, begin_of(step), begin_of(step), send_us, between_two("send", 1));
    sample.collective(2, step, begin_of(step), begin_of(step), receive_us, between_two("recv", 0));
  }
  return sample;
}

}  // namespace

TEST_CASE("What a receive takes longer than its send is waiting for the sender") {
  JudgedRanks judged(sends(11, 100, 3'100).text);
  CHECK(judged.only().verdict == SkewVerdict::skew);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 0);
  CHECK(judged.only().named->per_step == 3'000 * US);
  CHECK(judged.only().at_set_up == 1);
  CHECK(judged.only().incomplete == 0);
  CHECK(judged.skew().matched() == 10);
  CHECK(judged.skew().exchanges() == 10);
  CHECK(judged.skew().transfer() == 10 * 200 * US);
  CHECK(judged.waited(1, 0) == 10 * 3'000 * US);
  CHECK(judged.skew().waited().size() == 1);
  REQUIRE(judged.ranks.waits().size() == 10);
  const PeerWait& wait = judged.ranks.waits()[0];
  CHECK(wait.communicator == 2);
  CHECK(wait.rank == 1);
  CHECK(wait.awaited == 0);
  CHECK(wait.begin == begin_of(2) * US);
  CHECK(wait.time() == 3'000 * US);
}

TEST_CASE("What a send takes longer than its receive is waiting for the receiver") {
  JudgedRanks judged(sends(11, 5'100, 100).text);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);
  CHECK(judged.waited(0, 1) == 10 * 5'000 * US);
  SECTION("one that was buffered waits for nobody") {
    JudgedRanks other(sends(11, 20, 30).text);
    CHECK(other.skew().waited().empty());
    CHECK(other.only().verdict == SkewVerdict::transfer);
  }
}

TEST_CASE("Ranks have no last collective by their sends and receives") {
  JudgedRanks judged(sends(11, 100, 100).text);
  CHECK(judged.only().recorded[0].entered == 11);
  CHECK(judged.only().recorded[0].last_seq == 0);
}

TEST_CASE("In a pipeline, each rank waits for the one before it") {
  SampleRanks sample = ranks_of(3);
  for (int step = 1; step <= 11; step++) {
    std::uint64_t at = begin_of(step);
    sample.collective(1, step, at, at, 100, between_two("send", 1));
    sample.collective(2, step, at, at, 2'100, between_two("recv", 0));
    sample.collective(2, step, at + 5'000, at + 5'000, 100, between_two("send", 2));
    sample.collective(3, step, at, at, 5'100, between_two("recv", 1));
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.skew().exchanges() == 20);
  CHECK(judged.only().at_set_up == 2);
  CHECK(judged.waited(1, 0) == 10 * 2'000 * US);
  CHECK(judged.waited(2, 1) == 10 * 5'000 * US);
  CHECK(judged.skew().waited().size() == 2);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);  // by 5 of 7 ms
}

TEST_CASE("Exchanges are in the iteration that they were entered in, also of other ranks") {
  SampleRanks sample = ranks_of(3);
  for (int number = 1; number <= 3; number++) sample.collective(number, 1, 10, 10, 5);
  for (int step = 1; step <= 12; step++) {
    std::uint64_t at = begin_of(step);
    sample.collective(2, step, at + 1'000, at, 100, between_two("send", 2));
    sample.collective(3, step, at + 1'000, at, 3'100, between_two("recv", 1));
    sample.compute(1, at, 100);
    sample.line(
        R"({{"id":{},"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":{},"duration_us":1000.000,"pid":1,"tid":1,"ret":0}})",
        ++sample.ids, (at + 13'000) * US);
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.only().by_iterations);
  CHECK(judged.only().step_time == PERIOD_US * US);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);
  CHECK(judged.skew().steps().size() >= Skew::FEWEST_STEPS);
}

TEST_CASE("Groups of two ranks that send to each other are compared as a whole") {
  SampleRanks sample = ranks_of(2);
  Groups groups(sample);
  for (int step = 1; step <= 11; step++) {
    groups.run(0, step, {1}, {1}, 4'100);
    groups.run(1, step, {0}, {0}, 100);
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.skew().exchanges() == 10);
  CHECK(judged.only().exchanges.operations == 44);
  CHECK(judged.waited(0, 1) == 10 * 4'000 * US);
  CHECK(judged.skew().waited().size() == 1);
}

TEST_CASE("Groups with several partners are compared if each receives from each") {
  SampleRanks sample = ranks_of(3);
  Groups groups(sample);
  SECTION("all with all, also with themselves") {
    for (int step = 1; step <= 11; step++)
      for (int rank = 0; rank < 3; rank++)
        groups.run(rank, step, {0, 1, 2}, {0, 1, 2}, rank == 2 ? 100 : 2'100);
    JudgedRanks judged(sample.text);
    CHECK(judged.skew().exchanges() == 10);
    CHECK(judged.waited(0, 2) == 10 * 2'000 * US);
    CHECK(judged.waited(1, 2) == 10 * 2'000 * US);
    CHECK(judged.only().exchanges.several_partners == 0);
  }
  SECTION("a ring") {
    for (int step = 1; step <= 11; step++)
      for (int rank = 0; rank < 3; rank++)
        groups.run(rank, step, {(rank + 1) % 3}, {(rank + 2) % 3}, rank == 2 ? 100 : 2'100);
    JudgedRanks judged(sample.text);
    CHECK(judged.skew().matched() == 0);
    CHECK(judged.only().exchanges.several_partners == 33);
    CHECK(judged.only().exchanges.unmatched_sends == 0);
  }
}

TEST_CASE("A group with other collectives, and one with an unknown partner, are left out") {
  SampleRanks sample = ranks_of(2);
  Groups groups(sample);
  SECTION("an all_reduce") {
    for (int rank = 0; rank < 2; rank++) {
      SampleCollective reduce{"all_reduce", 64, R"(,"call_group":77)", "0x0", 0};
      reduce.more = fmt::format(R"(,"call_group":{})", 77 + rank);
      sample.call(1 + rank, 1, 100, reduce);
      sample.call(1 + rank, 1, 100, between_two(rank ? "recv" : "send", 1 - rank, 64, reduce.more));
      sample.group_end(1 + rank, 77 + rank, 100);
    }
    JudgedRanks judged(sample.text);
    CHECK(judged.skew().matched() == 0);
    CHECK(judged.only().exchanges.several_partners == 2);
    CHECK(judged.only().exchanges.without_partner == 0);
  }
  SECTION("a rank that was not recorded") {
    for (int step = 1; step <= 11; step++) {
      groups.run(0, step, {1, 5}, {}, 100);
      groups.run(1, step, {}, {0}, 2'100);
    }
    JudgedRanks judged(sample.text);
    CHECK(judged.skew().matched() == 0);
    CHECK(judged.only().exchanges.without_partner == 22);
    CHECK(judged.only().exchanges.unmatched_sends == 0);
  }
}

TEST_CASE("A receive of other bytes than its send is a mismatch") {
  SampleRanks sample = ranks_of(2);
  auto both = [&](int seq, const SampleCollective& send, const SampleCollective& receive) {
    sample.collective(1, seq, begin_of(seq), begin_of(seq), 100, send);
    sample.collective(2, seq, begin_of(seq), begin_of(seq), 100, receive);
  };
  both(1, between_two("send", 1, 1024), between_two("recv", 0, 1024));
  both(2, between_two("send", 1, 1024), between_two("recv", 0, 4096));
  SampleCollective halves = between_two("recv", 0, 1024);
  halves.more += R"(,"datatype":"float16")";  // the bytes are the same
  both(3, between_two("send", 1, 1024), halves);
  JudgedRanks judged(sample.text);
  const auto& all = judged.ranks.mismatches().listed();
  REQUIRE(all.size() == 1);
  CHECK(all[0].seq == 2);
  CHECK(all[0].to == 1);
  CHECK(all[0].field == "bytes");
  CHECK(all[0].has == "1024");
  CHECK(all[0].other_has == "4096");
  CHECK(all[0].communicator == 1);
  CHECK(all[0].other == 2);
  TraceFacts facts;
  facts.losses["ring_full_entry"] = {.degraded = false, .count = 3, .uncounted = false};
  CHECK(JudgedRanks(sample.text, facts).ranks.mismatches().count() == 0);
}

TEST_CASE("A send without its receive is counted, if the trace is complete") {
  SampleRanks sample = sends(11, 100, 100);
  sample.collective(1, 12, begin_of(12), begin_of(12), 100, between_two("send", 1));
  sample.collective(2, 1, begin_of(12), begin_of(12), 100, between_two("send", 0));
  TraceFacts facts;
  SECTION("complete") {
    JudgedRanks judged(sample.text);
    CHECK(judged.only().knows_unmatched);
    CHECK(judged.only().exchanges.unmatched_sends == 2);
    CHECK(judged.only().exchanges.unmatched_receives == 0);
    CHECK(judged.only().exchanges.without_partner == 2);
    CHECK(judged.skew().matched() == 10);
    auto json = ranks_json(judged.ranks);
    CHECK(json["communicators"][0]["sends_and_receives"] == Json({{"count", 24},
                                                                  {"several_partners", 0},
                                                                  {"without_partner", 2},
                                                                  {"unmatched_sends", 2},
                                                                  {"unmatched_receives", 0}}));
  }
  SECTION("records were lost") {
    facts.losses["ring_full_entry"] = {.degraded = false, .count = 3, .uncounted = false};
  }
  SECTION("it has no end") { facts.cut_off.emplace_back("trace.jsonl"); }
  JudgedRanks judged(sample.text, facts);
  bool complete = facts.losses.empty() && facts.cut_off.empty();
  CHECK(judged.only().knows_unmatched == complete);
}

TEST_CASE("Where only sends were recorded, nothing is said of their receives") {
  SampleRanks sample = ranks_of(2);
  for (int step = 1; step <= 4; step++)
    sample.call(1, step, begin_of(step), between_two("send", 1));
  CHECK(JudgedRanks(sample.text).only().exchanges.unmatched_sends == 0);
}

TEST_CASE("Captured sends are matched by number and launch, and with captured receives only") {
  SampleRanks sample = ranks_of(2);
  bool both = GENERATE(true, false);
  CAPTURE(both);
  for (int rank = 0; rank < 2; rank++) {
    const char* op = rank ? "recv" : "send";
    if (rank && !both) {
      for (int step = 1; step <= 11; step++)
        sample.collective(2, step, begin_of(step), begin_of(step), 100, between_two(op, 0));
      continue;
    }
    auto graph = static_cast<std::uint64_t>(7 + rank);
    int call = sample.call(1 + rank, 1, 100, between_two(op, 1 - rank, 64, R"(,"captured":true)"));
    sample.text += content_line(graph, 1, 1, kernel_nodes("ncclX", "1"),
                                fmt::format(R"(,"collectives":[{}])", call));
    for (int step = 1; step <= 11; step++) {
      int launch = ++sample.ids;
      std::string line =
          graph_launch(launch, static_cast<int>(begin_of(step) * US), of_graph(graph));
      line.replace(line.find("\"pid\":1"), 7, fmt::format("\"pid\":{}", 1 + rank));
      sample.text += line;
      sample.kernel(1 + rank, launch, begin_of(step), rank ? 100 : 2'100, "ncclX");
    }
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.skew().exchanges() == (both ? 10 : 0));
  CHECK(judged.waited(0, 1) == (both ? 10 * 2'000 * US : 0));
  CHECK(judged.only().exchanges.without_partner == (both ? 0 : 22));
  CHECK(judged.only().exchanges.unmatched_sends == 0);
}

TEST_CASE("What was sent after records were lost is not compared") {
  SampleRanks sample = sends(40, 100, 3'100);
  sample.line(
      R"({{"type":"lost","ts":{1},"reason":"ring_full_entry","severity":"lost","count":12,"since":{0},"until":{1}}})",
      begin_of(20) * US, begin_of(21) * US);
  TraceFacts facts;
  facts.losses["ring_full_entry"] = {.degraded = false, .count = 12, .uncounted = false};
  JudgedRanks judged(sample.text, facts);
  CHECK(judged.only().verdict == SkewVerdict::inconclusive);
  CHECK_FALSE(judged.only().named);
  CHECK(judged.skew().exchanges() == 18);
  CHECK(judged.only().after_loss == 21);
}

TEST_CASE("Without GPU times, sends and receives are not compared") {
  SampleRanks sample = ranks_of(2);
  for (int step = 1; step <= 11; step++) {
    sample.call(1, step, begin_of(step) + 5'000, between_two("send", 1));
    sample.call(2, step, begin_of(step), between_two("recv", 0));
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.only().verdict == SkewVerdict::inconclusive);
  CHECK(judged.only().why_inconclusive ==
        "there are no GPU times, and sends and receives need them");
  CHECK(judged.skew().matched() == 0);
}

TEST_CASE("Of more sends and receives than are kept, the others are counted") {
  SampleRanks sample = sends(11, 100, 100);
  LineParser parser;
  Exchanges exchanges(10);
  const Communicators* communicators = nullptr;
  CollectiveRuns runs(parser.names(), {},
                      [&](const CollectiveRun& run) { exchanges.add(run, *communicators); });
  communicators = &runs.communicators();
  auto seen = each_line(parser, sample.text, [&](const Line& line) { runs.line(line); });
  runs.finish({});
  CHECK(exchanges.left_out() == 12);
  Mismatches mismatches;
  CHECK(exchanges.find(communicators->by_identity().at(0xabc), mismatches).books.operations == 10);
}
