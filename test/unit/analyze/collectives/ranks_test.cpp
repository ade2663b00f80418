#include "analyze/collectives/ranks.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "support/collective_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/judged_ranks.hpp"
#include "support/units.hpp"
#include "trace/merged.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr std::uint64_t STEP_US = 20'000;

// Steps of one collective each, the first of which sets up. `late`: by how many µs which rank comes
// after the first one, in each step.
template <typename Late>
SampleRanks steps(int ranks, int count, Late&& late) {
  SampleRanks sample;
  for (int rank = 0; rank < ranks; rank++) sample.communicator(1 + rank, rank, ranks);
  for (int step = 1; step <= count; step++) {
    std::uint64_t begin = static_cast<std::uint64_t>(step) * STEP_US, last = 0;
    for (int rank = 0; rank < ranks; rank++) last = std::max<std::uint64_t>(last, late(rank, step));
    for (int rank = 0; rank < ranks; rank++) {
      std::uint64_t at = begin + late(rank, step);
      sample.collective(1 + rank, step, at, at, begin + last + 100 - at);
    }
  }
  return sample;
}
auto rank_1_by(std::uint64_t us) {
  return [us](int rank, int) { return rank == 1 ? us : 0; };
}

}  // namespace

TEST_CASE("A rank that always comes late is named, with how late it comes") {
  for (std::uint64_t us : {1'000, 10'000})
    for (int count : {2, 4}) {
      CAPTURE(us, count);
      JudgedRanks judged(steps(count, 11, rank_1_by(us)).text);
      CHECK(judged.only().verdict == SkewVerdict::skew);
      REQUIRE(judged.only().named);
      CHECK(judged.only().named->rank == 1);
      CHECK(judged.only().named->per_step == us * US);
      CHECK(judged.only().at_set_up == 1);
      CHECK(judged.only().per_step == 1);
      CHECK(judged.skew().matched() == 10);
      CHECK(judged.skew().transfer() == 10 * 100 * US * static_cast<std::uint64_t>(count));
      CHECK(judged.waited(0, 1) == 10 * us * US);
      CHECK(judged.waited(1, 0) == 0);
      CHECK(judged.skew().waited().size() == static_cast<std::size_t>(count - 1));
      REQUIRE(judged.ranks.waits().size() == static_cast<std::size_t>(10 * (count - 1)));
      const PeerWait& wait = judged.ranks.waits()[0];
      CHECK(wait.rank == 0);
      CHECK(wait.awaited == 1);
      CHECK(wait.begin == 2 * STEP_US * US);
      CHECK(wait.time() == us * US);
    }
}

TEST_CASE("Of ranks that nothing delays, none is named") {
  // What was measured between two such ranks: one always comes a little later.
  JudgedRanks judged(steps(2, 60, [](int rank, int step) {
                       return rank == 1 ? std::uint64_t{150} + (step % 7 ? 0 : 400) : 0;
                     }).text);
  CHECK(judged.only().verdict == SkewVerdict::transfer);
  CHECK_FALSE(judged.only().named);
  CHECK(judged.skew().waited().empty());
  CHECK(judged.skew().below_noise() > 0);
}

TEST_CASE("A rank that is late now and then is not named, however late it is") {
  JudgedRanks judged(steps(2, 19, [](int rank, int step) {
                       return rank == 1 && step % 4 == 0 ? std::uint64_t{15'000} : 0;
                     }).text);
  CHECK_FALSE(judged.only().named);
  CHECK(judged.only().verdict == SkewVerdict::transfer);
  CHECK(judged.waited(0, 1) == 4 * 15'000 * US);
}

TEST_CASE("Ranks that are late in turns are skew, and none is named") {
  JudgedRanks judged(steps(2, 41, [](int rank, int step) {
                       return rank == step % 2 ? std::uint64_t{10'000} : 0;
                     }).text);
  CHECK(judged.only().verdict == SkewVerdict::skew);
  CHECK_FALSE(judged.only().named);
  CHECK(judged.waited(0, 1) == 20 * 10'000 * US);
  CHECK(judged.waited(1, 0) == 20 * 10'000 * US);
}

TEST_CASE("A single step that took very long hides no rank that is always late") {
  JudgedRanks judged(steps(2, 41, [](int rank, int step) -> std::uint64_t {
                       if (step == 20) return rank == 0 ? 19'000 : 0;
                       return rank == 1 ? 1'000 : 0;
                     }).text);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);
  CHECK(judged.only().per_step == 4);
  CHECK(judged.only().named->per_step == 4 * 1'000 * US);
}

TEST_CASE("A part of the waiting is mixed") {
  SampleRanks sample;
  for (int rank = 0; rank < 2; rank++) sample.communicator(1 + rank, rank, 2);
  for (int step = 1; step <= 12; step++) {
    auto at = static_cast<std::uint64_t>(step) * STEP_US;
    sample.collective(1, step, at, at, 3'000);
    sample.collective(2, step, at, at + 1'500, 1'500);
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.only().verdict == SkewVerdict::mixed);  // 1.5 of 4.5 ms
  CHECK(judged.only().named->per_step == 1'500 * US);
}

TEST_CASE("Iterations are the steps where there are any") {
  SampleRanks sample;
  for (int rank = 0; rank < 2; rank++) sample.communicator(1 + rank, rank, 2);
  for (int step = 0; step < 12; step++) {
    std::uint64_t at = (static_cast<std::uint64_t>(step) + 1) * STEP_US;
    for (int i = 0; i < 3; i++) {  // the first of three comes late
      std::uint64_t late = i ? 0 : 5'000, here = at + static_cast<std::uint64_t>(i) * 6'000;
      sample.collective(1, 3 * step + i + 1, here, here, 100 + late);
      sample.collective(2, 3 * step + i + 1, here + late, here + late, 100);
    }
    for (int pid : {1, 2})
      sample.line(
          R"({{"id":{},"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":{},"duration_us":1000.000,"pid":{},"tid":{},"ret":0}})",
          ++sample.ids, (at + 13'000) * US, pid, pid);
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.only().by_iterations);
  CHECK(judged.only().step_time == STEP_US * US);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);
  CHECK(judged.only().named->per_step == 5'000 * US);
  for (const auto& [number, step] : judged.skew().steps()) CHECK(step.matched == (number ? 3 : 2));
}

TEST_CASE("Different wishes at the same number are a mismatch of that field") {
  SampleRanks sample;
  for (int rank = 0; rank < 2; rank++) sample.communicator(1 + rank, rank, 2);
  auto both = [&](int seq, SampleCollective a, SampleCollective b) {
    auto at = static_cast<std::uint64_t>(seq) * STEP_US;
    sample.collective(1, seq, at, at, 100, a);
    sample.collective(2, seq, at, at, 100, b);
  };
  auto more = [](const std::string& text) {
    SampleCollective one;
    one.more = text;
    return one;
  };
  both(1, {}, {});
  both(2, {}, {"all_gather", 1 << 20, "", "0x0", 0});
  both(3, {}, {"all_reduce", 1 << 10, "", "0x0", 0});
  both(4, more(R"(,"reduction":"sum")"), more(R"(,"reduction":"max")"));
  both(5, more(R"(,"root":0)"), more(R"(,"root":1)"));
  both(6, more(R"(,"reduction":5)"), more(R"(,"reduction":77)"));  // made by the program
  SECTION("nothing was lost") {
    JudgedRanks judged(sample.text);
    const auto& all = judged.ranks.mismatches().listed();
    REQUIRE(all.size() == 4);
    CHECK(judged.ranks.mismatches().count() == 4);
    CHECK(all[0].seq == 2);
    CHECK(all[0].field == "function");
    CHECK(all[0].has == "all_reduce");
    CHECK(all[0].other_has == "all_gather");
    CHECK(all[0].communicator == 1);
    CHECK(all[0].other == 2);
    CHECK(all[1].field == "count");
    CHECK(all[1].has == "262144");
    CHECK(all[2].field == "reduction");
    CHECK(all[3].field == "root");
  }
  SECTION("records were lost") {
    TraceFacts facts;
    facts.losses["ring_full_entry"] = {.degraded = false, .count = 3, .uncounted = false};
    CHECK(JudgedRanks(sample.text, facts).ranks.mismatches().count() == 0);
  }
}

TEST_CASE("Lost records downgrade the verdict, and what came after them is not compared") {
  SampleRanks sample = steps(2, 40, rank_1_by(10'000));
  sample.line(
      R"({{"type":"lost","ts":{1},"reason":"ring_full_entry","severity":"lost","count":12,"since":{0},"until":{1}}})",
      20 * STEP_US * US, 21 * STEP_US * US);
  TraceFacts facts;
  facts.losses["ring_full_entry"] = {.degraded = false, .count = 12, .uncounted = false};
  JudgedRanks judged(sample.text, facts);
  CHECK(judged.only().verdict == SkewVerdict::inconclusive);
  CHECK(judged.only().why_inconclusive == "records were lost: 12 ring_full_entry");
  CHECK_FALSE(judged.only().named);
  CHECK(judged.skew().matched() == 18);
  CHECK(judged.only().after_loss == 21);
  SECTION("nobody knows when") {
    facts.losses["bad_record"] = {.degraded = false, .count = 1, .uncounted = false};
    JudgedRanks other(steps(2, 40, rank_1_by(10'000)).text, facts);
    CHECK(other.skew().matched() == 0);
    CHECK(other.ranks.waits().empty());
  }
}

TEST_CASE("A communicator that recording found later is not matched by its numbers") {
  SampleRanks sample = steps(2, 10, rank_1_by(10'000));
  std::size_t at = sample.text.find(R"("rank":1,"ranks":2)");
  sample.text.insert(at, R"("late":true,)");
  JudgedRanks judged(sample.text);
  CHECK(judged.only().recorded.size() == 1);
  CHECK(judged.only().verdict == SkewVerdict::inconclusive);
  CHECK(judged.ranks.not_counted() == 10);
}

TEST_CASE("An identity that was used again is not matched") {
  SampleRanks sample = steps(2, 10, rank_1_by(10'000));
  sample.communicator(3, 1, 2);
  sample.collective(3, 1, 900'000, 900'000, 10);
  JudgedRanks judged(sample.text);
  CHECK(judged.only().verdict == SkewVerdict::inconclusive);
  CHECK_FALSE(judged.only().skew);
}

TEST_CASE("A rank that stops earlier has its last collective, and the others go on") {
  SampleRanks sample = steps(3, 20, [](int, int) { return std::uint64_t{0}; });
  std::string text;
  for (std::size_t at = 0; at < sample.text.size();) {
    std::size_t end = sample.text.find('\n', at) + 1;
    std::string line = sample.text.substr(at, end - at);
    at = end;
    std::size_t ts = line.find("\"ts\":");
    bool of_third = line.find("\"pid\":3,") != line.npos;
    if (!of_third || std::stoull(line.substr(ts + 5)) < 15 * STEP_US * US) text += line;
  }
  text += R"({"type":"process","op":"exit","ts":300000000,"pid":3,"exit_code":1})"
          "\n";
  JudgedRanks judged(text);
  REQUIRE(judged.only().recorded.size() == 3);
  CHECK(judged.only().recorded[0].last_seq == 20);
  CHECK(judged.only().recorded[2].last_seq == 14);
  CHECK(judged.only().recorded[2].entered == 14);
  CHECK(judged.only().recorded[2].exited == 300'000 * US);
  CHECK_FALSE(judged.only().recorded[0].exited);
  CHECK(judged.only().incomplete == 6);
  CHECK(judged.skew().matched() == 19);
}

TEST_CASE("Of some of the ranks, it is said how many were recorded") {
  SampleRanks sample;
  sample.communicator(1, 0, 8);
  sample.communicator(2, 3, 8);
  for (int step = 1; step < 12; step++) {
    auto at = static_cast<std::uint64_t>(step) * STEP_US;
    sample.collective(1, step, at, at, 5'000);
    sample.collective(2, step, at, at, 1'000);
  }
  JudgedRanks judged(sample.text);
  CHECK(judged.only().ranks == 8);
  CHECK(judged.only().recorded.size() == 2);
  CHECK(judged.only().named->rank == 3);
}

TEST_CASE("Captured collectives are matched by their number and their launch") {
  SampleRanks sample;
  int calls[2];
  for (int rank = 0; rank < 2; rank++) {
    sample.communicator(1 + rank, rank, 2);
    SampleCollective captured;
    captured.more = R"(,"captured":true)";
    calls[rank] = sample.call(1 + rank, 2, 100, captured);
    std::string content =
        content_line(static_cast<std::uint64_t>(7 + rank), 1, 1, kernel_nodes("ncclX", "1"),
                     fmt::format(R"(,"collectives":[{}])", calls[rank]));
    sample.text += content;
  }
  for (int step = 1; step <= 10; step++)
    for (int rank = 0; rank < 2; rank++) {
      auto at = static_cast<std::uint64_t>(step) * STEP_US;
      int launch = ++sample.ids;
      std::string line = graph_launch(launch, static_cast<int>(at * US),
                                      of_graph(static_cast<std::uint64_t>(7 + rank)));
      line.replace(line.find("\"pid\":1"), 7, fmt::format("\"pid\":{}", 1 + rank));
      sample.text += line;
      sample.kernel(1 + rank, launch, at, rank ? 100 : 2'100, "ncclX");
    }
  JudgedRanks judged(sample.text);
  CHECK(judged.skew().matched() == 10);
  REQUIRE(judged.only().named);
  CHECK(judged.only().named->rank == 1);
  CHECK(judged.only().named->per_step == 2'000 * US);
}

TEST_CASE("A group is compared as a whole") {
  SampleRanks sample;
  for (int rank = 0; rank < 2; rank++) sample.communicator(1 + rank, rank, 2);
  int group = 0;
  for (int step = 0; step < 10; step++)
    for (int rank = 0; rank < 2; rank++) {
      auto at = (static_cast<std::uint64_t>(step) + 1) * STEP_US;
      SampleCollective grouped;
      grouped.more = fmt::format(R"(,"call_group":{})", ++group);
      sample.call(1 + rank, 2 * step + 1, at, grouped);
      sample.call(1 + rank, 2 * step + 2, at, grouped);
      int end = sample.group_end(1 + rank, group, at);
      sample.kernel(1 + rank, sample.launch(1 + rank, at, fmt::format(R"(,"within":{})", end)), at,
                    rank ? 100 : 3'100, "ncclX");
    }
  JudgedRanks judged(sample.text);
  CHECK(judged.skew().matched() == 9);
  CHECK(judged.waited(0, 1) == 9 * 3'000 * US);
  CHECK(judged.skew().waited().size() == 1);
}

TEST_CASE("A broadcast makes only the others wait, and among more than two ranks nobody knows") {
  for (int count : {2, 3}) {
    SampleRanks sample;
    for (int rank = 0; rank < count; rank++) sample.communicator(1 + rank, rank, count);
    for (int step = 1; step <= 11; step++)
      for (int rank = 0; rank < count; rank++) {
        auto at = static_cast<std::uint64_t>(step) * STEP_US;
        bool root_first = step % 2;
        sample.collective(1 + rank, step, at, at, (rank == 0) == root_first ? 4'000 : 1'000,
                          {"broadcast", 1 << 20, R"(,"root":0)", "0x0", 0});
      }
    JudgedRanks judged(sample.text);
    CHECK(judged.waited(1, 0) == (count == 2 ? 5 * 3'000 * US : 0));
    CHECK(judged.waited(0, 1) == 0);
  }
}

TEST_CASE("A process with two ranks has both of them, and communicators are judged one by one") {
  SampleRanks sample;
  sample.communicator(1, 0, 2, "0xa", "", 9);
  sample.communicator(2, 1, 2, "0xa", "", 9);
  sample.communicator(3, 0, 2, "0xb");
  sample.communicator(4, 1, 2, "0xb");
  for (int step = 1; step <= 11; step++)
    for (int number = 1; number <= 4; number++) {
      auto at = static_cast<std::uint64_t>(step) * STEP_US;
      sample.collective(number, step, at, at, number == 1 || number == 4 ? 2'000 : 1'000);
    }
  JudgedRanks judged(sample.text);
  REQUIRE(judged.ranks.communicators().size() == 2);
  CHECK(judged.ranks.communicators()[0].named->rank == 1);
  CHECK(judged.ranks.communicators()[1].named->rank == 0);
}

TEST_CASE("Without GPU times, who enters last is named, if the clocks can tell") {
  auto entered = [](std::uint64_t late) {
    SampleRanks sample;
    for (int rank = 0; rank < 2; rank++)
      sample.line(
          R"({{"type":"collective","op":"comm","ts":1,"pid":{0},"host":"h{0}","communicator":{0},"identity":"0xabc","rank":{1},"ranks":2}})",
          rank + 1, rank);
    for (int step = 1; step <= 11; step++)
      for (int rank = 0; rank < 2; rank++)
        sample.call(1 + rank, step, static_cast<std::uint64_t>(step) * STEP_US + (rank ? late : 0));
    return sample.text;
  };
  SECTION("one clock") {
    JudgedRanks judged(entered(2'000));
    CHECK(judged.skew().times() == Skew::Times::host);
    CHECK(judged.only().verdict == SkewVerdict::skew);
    CHECK(judged.only().named->per_step == 2'000 * US);
    CHECK(judged.ranks.waits().empty());
    CHECK(JudgedRanks(entered(100)).only().verdict == SkewVerdict::inconclusive);
  }
  SECTION("clocks that may differ") {
    TraceFacts facts;
    facts.header.merged.resize(2);
    facts.header.merged[1].number = 1;
    facts.header.merged[0].error_ns = 1'500'000;
    facts.header.merged[1].error_ns = 1'500'000;
    CHECK_FALSE(JudgedRanks(entered(2'000), facts).only().named);
    CHECK(JudgedRanks(entered(4'000), facts).only().named->rank == 1);
    facts.header.merged[1].error_ns.reset();
    CHECK_FALSE(JudgedRanks(entered(4'000), facts).only().skew);
  }
}
