#include "sink/hangs/hang.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "sink/hangs/hang_report.hpp"
#include "sink/hangs/hang_watch.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;
using namespace cudabpf::hangs;

namespace {

constexpr std::uint64_t SECOND = 1'000'000'000, LIMIT = 30 * SECOND;

// A communicator's ranks, each a process: rank N is pid 100 + N.
struct Ranks {
  explicit Ranks(std::int32_t count, std::int32_t of = 0) : communicators(count) {
    for (std::int32_t rank = 0; rank < count; rank++) {
      Communicator& one = communicators[static_cast<std::size_t>(rank)];
      one.number = static_cast<std::uint64_t>(rank) + 1;
      one.pid = 100 + static_cast<std::uint32_t>(rank);
      one.identity = 0xabc;
      one.rank = rank;
      one.ranks = of ? of : count;
      doings[one.pid].pid = one.pid;
      doings[one.pid].called_ts = 1;
      doings[one.pid].state = 'S';
    }
  }

  void enter(std::size_t rank, std::uint64_t sequence, const char* symbol = "ncclAllReduce",
             std::uint64_t count = 10, std::uint64_t group = 0) {
    SampleCall call(symbol, {0x1000, 0x2000, count, 7, 0, 0x5e00, 0});
    call.communicator = &communicators[rank];
    call.sequence = sequence;
    call.group = group;
    call.pid = communicators[rank].pid;
    call.id = sequence * 100 + rank;
    call.ts = sequence * SECOND;
    positions.note(call, false);
  }
  // These collectives into a graph, which is launched.
  void capture(std::size_t rank, std::uint64_t first, std::uint64_t last,
               const char* symbol = "ncclAllReduce") {
    GraphContent& graph = graphs[rank];
    for (std::uint64_t sequence = first; sequence <= last; sequence++) {
      SampleCall call(symbol, {0x1000, 10, 7, 1, 0x5e00, 0});
      call.communicator = &communicators[rank];
      call.sequence = sequence;
      call.captured = true;
      call.pid = communicators[rank].pid;
      call.id = sequence * 100 + rank;
      call.ts = sequence * SECOND;
      positions.note(call, false);
      graph.collectives.push_back({call.id, call.function->op, 10});
    }
  }
  void launch(std::size_t rank, std::uint64_t ts, bool known = true) {
    SampleCall call("cuGraphLaunch", {0x9000, 0x5e00});
    call.pid = communicators[rank].pid;
    call.ts = ts;
    if (known) call.graph = &graphs[rank];
    positions.note(call, false);
  }
  void all_enter(std::uint64_t sequence) {
    for (std::size_t rank = 0; rank < communicators.size(); rank++) enter(rank, sequence);
  }
  void wait(std::size_t rank, std::uint64_t open_ns = LIMIT) {
    OpenCall open;
    open.pid = open.tid = communicators[rank].pid;
    open.function = find_function("cuStreamSynchronize");
    open.open_ns = open_ns;
    doings[open.pid].open = open;
  }
  Hang hang(std::uint64_t lost = 0) const {
    return judge(positions, doings, 100 * SECOND, LIMIT, lost);
  }
  static std::string named(const Hang& hang) {
    std::string names;
    if (hang.communicators.empty()) return names;
    for (const RankState& member : hang.communicators[0].members)
      if (member.named) names += std::to_string(*member.rank);
    return names;
  }

  std::vector<Communicator> communicators;
  std::map<std::size_t, GraphContent> graphs;
  Positions positions;
  Doings doings;
};

}  // namespace

TEST_CASE("Of ranks that one call made, one that has entered nothing is named") {
  Ranks ranks(3);
  SampleCall made("ncclCommInitAll", {0x7000, 3, 0});
  std::vector<const Communicator*> others{&ranks.communicators[1], &ranks.communicators[2]};
  made.communicator = ranks.communicators.data();
  made.also_made = others;
  ranks.positions.note(made, false);
  ranks.enter(0, 1);
  ranks.enter(1, 1);
  ranks.wait(0);
  Hang hang = ranks.hang();
  CHECK(hang.kind == Kind::missing_enter);
  CHECK(Ranks::named(hang) == "2");
}

TEST_CASE("The rank that has not entered what others have is named") {
  Ranks ranks(3);
  ranks.all_enter(1);
  ranks.enter(0, 2);
  ranks.enter(2, 2);
  ranks.wait(0);
  ranks.wait(2);
  Hang hang = ranks.hang();
  CHECK(hang.kind == Kind::missing_enter);
  CHECK(Ranks::named(hang) == "1");
  CHECK(hang.communicators[0].sequence == 2);
  CHECK(headline(hang) ==
        "rank 1 of 3 has not entered all_reduce 2; process 100 is in cuStreamSynchronize for "
        "30.0 s");
  auto report = nlohmann::json::parse(as_json(hang, "node1", 5, LIMIT));
  CHECK(report["kind"] == "missing_enter");
  CHECK(report["communicators"][0]["members"][1]["named"] == "missing_enter");
  CHECK(report["communicators"][0]["members"][0]["entered"] == 2);
  CHECK(report["processes"][0]["open_call"]["name"] == "cuStreamSynchronize");
}

TEST_CASE("A rank that has not launched a graph of collectives that others have is named") {
  Ranks ranks(3);
  for (std::size_t rank = 0; rank < 3; rank++) {
    ranks.capture(rank, 1, 4);
    ranks.launch(rank, 10 * SECOND);
    ranks.wait(rank);
  }
  CHECK(ranks.hang().kind == Kind::all_entered);
  CHECK_FALSE(is_any_behind(ranks.positions, 100 * SECOND, LIMIT));
  CHECK(headline(ranks.hang())
            .starts_with("all ranks have launched the same graphs of collectives, and the last "
                         "does not end"));
  ranks.launch(0, 50 * SECOND);
  ranks.launch(2, 51 * SECOND);
  ranks.doings[101].open.reset();
  Hang hang = ranks.hang();
  CHECK(hang.kind == Kind::missing_enter);
  CHECK(Ranks::named(hang) == "1");
  CHECK(headline(hang).starts_with(
      "rank 1 of 3 has not launched a graph of collectives that others have; process 100"));
  CHECK(as_text(hang).find("and 8 more in 2 launches of graphs, the last 50.0 s ago") !=
        std::string::npos);
  auto report = nlohmann::json::parse(as_json(hang, "node1", 5, LIMIT));
  CHECK(report["communicators"][0]["in_graphs"] == true);
  CHECK(report["communicators"][0]["members"][1]["graphs"]["collectives"] == 4);
  CHECK_FALSE(is_any_behind(ranks.positions, 79 * SECOND, LIMIT));
  CHECK(is_any_behind(ranks.positions, 80 * SECOND, LIMIT));
  ranks.launch(1, 90 * SECOND);
  CHECK_FALSE(is_any_behind(ranks.positions, 200 * SECOND, LIMIT));
  CHECK(ranks.hang().kind == Kind::all_entered);
}

TEST_CASE("Nobody is named by launches of graphs that may hold anything") {
  Ranks ranks(2);
  for (std::size_t rank = 0; rank < 2; rank++) {
    ranks.capture(rank, 1, 2);
    ranks.launch(rank, 10 * SECOND);
  }
  ranks.launch(0, 20 * SECOND);
  ranks.launch(1, 20 * SECOND, false);
  ranks.wait(0);
  Hang hang = ranks.hang();
  CHECK(hang.kind == Kind::unknown);
  CHECK(Ranks::named(hang).empty());
  CHECK(headline(hang).starts_with(
      "nobody can be named: what was in the graphs that were launched is not known"));
  CHECK_FALSE(is_any_behind(ranks.positions, 100 * SECOND, LIMIT));
  // What a body of a conditional node does may be done any number of times.
  Ranks looping(2);
  for (std::size_t rank = 0; rank < 2; rank++) {
    looping.capture(rank, 1, 2);
    GraphOperation body;
    body.conditional = true;
    looping.graphs[rank].operations.emplace_back(body, 1);
    looping.launch(rank, 10 * SECOND);
  }
  looping.launch(0, 20 * SECOND);
  looping.wait(0);
  CHECK(looping.hang().kind == Kind::unknown);
}

TEST_CASE("Sends and receives in graphs differ by rank") {
  Ranks ranks(2);
  ranks.capture(0, 1, 2, "ncclSend");
  ranks.capture(1, 1, 1, "ncclRecv");
  ranks.launch(0, 10 * SECOND);
  ranks.launch(1, 10 * SECOND);
  CHECK_FALSE(is_any_behind(ranks.positions, 100 * SECOND, LIMIT));
}

TEST_CASE("A rank that is behind because it waits itself is not named") {
  Ranks ranks(3);
  ranks.all_enter(1);
  ranks.enter(0, 2);
  ranks.wait(0);
  ranks.wait(1);  // for something else
  CHECK(Ranks::named(ranks.hang()) == "2");
  ranks.wait(2);
  CHECK(Ranks::named(ranks.hang()) == "12");  // then both are
}

TEST_CASE("A rank that is stopped or has ended is named as that") {
  Ranks ranks(2);
  ranks.all_enter(1);
  ranks.enter(0, 2);
  ranks.wait(0);
  ranks.doings[101].state = 'T';
  CHECK(ranks.hang().kind == Kind::stopped);
  ranks.doings[101].gone = true;
  ranks.doings[101].signal = 9;
  ranks.positions.process_gone(101);
  CHECK(ranks.hang().kind == Kind::gone);
  CHECK(headline(ranks.hang())
            .starts_with("rank 1 of 2 has not entered all_reduce 2: killed by signal 9"));
  CHECK(Ranks::named(ranks.hang()) == "1");
}

TEST_CASE("Ranks that call different things under one number") {
  Ranks ranks(3);
  ranks.all_enter(1);
  ranks.enter(0, 2);
  ranks.enter(1, 2, "ncclAllGather");
  ranks.enter(2, 2);
  ranks.wait(0);
  CHECK(ranks.hang().kind == Kind::mismatch);
  CHECK(Ranks::named(ranks.hang()) == "1");

  Ranks two(2);
  two.enter(0, 1);
  two.enter(1, 1, "ncclAllReduce", 11);
  two.wait(0);
  CHECK(two.hang().kind == Kind::mismatch);
  CHECK(Ranks::named(two.hang()) == "01");  // who is wrong is not known
}

TEST_CASE("A group that is not ended") {
  Ranks ranks(2);
  SampleCall start("ncclGroupStart", {}), end("ncclGroupEnd", {});
  for (SampleCall* call : {&start, &end}) {
    call->pid = 101;
    call->group = 4;
  }
  ranks.positions.note(start, false);
  ranks.enter(0, 1);
  ranks.enter(1, 1, "ncclAllReduce", 10, 4);
  ranks.wait(0);
  CHECK(ranks.hang().kind == Kind::group_open);
  CHECK(Ranks::named(ranks.hang()) == "1");
  ranks.positions.note(end, false);
  CHECK(ranks.hang().kind == Kind::all_entered);
}

TEST_CASE("Where all have entered, or the others are elsewhere, nobody is named") {
  Ranks ranks(2);
  ranks.all_enter(1);
  ranks.wait(0);
  CHECK(ranks.hang().kind == Kind::all_entered);
  CHECK(headline(ranks.hang()).starts_with("all ranks have entered all_reduce 1"));
  Ranks some(2, 8);
  some.all_enter(1);
  some.wait(0);
  CHECK(headline(some.hang()).starts_with("the ranks recorded here have entered all_reduce 1"));
  CHECK(as_text(some.hang()).find("6 more of its 8 ranks are not recorded here") !=
        std::string::npos);
  CHECK(Ranks::named(some.hang()).empty());
}

TEST_CASE("Where calls may be missing, nobody is named") {
  Ranks ranks(2);
  ranks.all_enter(1);
  ranks.enter(0, 2);
  ranks.wait(0);
  CHECK(ranks.hang(12).kind == Kind::unknown);
  CHECK(Ranks::named(ranks.hang(12)).empty());
  CHECK(headline(ranks.hang(12)).starts_with("nobody can be named: 12 records may be missing"));
  ranks.communicators[1].lost = true;
  ranks.enter(1, 1);
  ranks.communicators[0].lost = true;
  ranks.enter(0, 3);
  CHECK(ranks.hang().kind == Kind::unknown);

  Ranks late(1);
  late.communicators[0].identity.reset();
  late.communicators[0].late = true;
  late.enter(0, 1);
  late.wait(0);
  CHECK(late.hang().kind == Kind::unknown);
}

TEST_CASE("A send without its receive") {
  Ranks ranks(2);
  SampleCall send("ncclSend", {0x1000, 1, 7, 1, 0x5e00, 0});
  send.communicator = &ranks.communicators[0];
  send.pid = 100;
  send.sequence = 1;
  ranks.positions.note(send, false);
  SampleCall other("ncclCommUserRank", {0x5e00, 0x7000});
  other.communicator = &ranks.communicators[1];
  other.pid = 101;
  ranks.positions.note(other, false);
  ranks.wait(0);
  CHECK(ranks.hang().kind == Kind::missing_peer);
  CHECK(Ranks::named(ranks.hang()) == "1");
  SampleCall receive("ncclRecv", {0x1000, 1, 7, 0, 0x5e00, 0});
  receive.communicator = &ranks.communicators[1];
  receive.pid = 101;
  receive.sequence = 1;
  ranks.positions.note(receive, false);
  CHECK(ranks.hang().kind == Kind::all_entered);
}

TEST_CASE("A rank that is behind for long is a hang even if no call is open") {
  Ranks ranks(2);
  ranks.all_enter(1);
  ranks.enter(0, 2);  // at 2 s
  CHECK_FALSE(is_any_behind(ranks.positions, 31 * SECOND, LIMIT));
  CHECK(is_any_behind(ranks.positions, 32 * SECOND, LIMIT));
  ranks.communicators[1].lost = true;
  ranks.enter(1, 1);
  CHECK_FALSE(is_any_behind(ranks.positions, 32 * SECOND, LIMIT));
}

TEST_CASE("A call that failed takes no part") {
  Ranks ranks(2);
  ranks.all_enter(1);
  SampleCall failed("ncclAllReduce", {0x1000, 0x2000, 10, 7, 0, 0x5e00, 0});
  failed.communicator = &ranks.communicators[0];
  failed.pid = 100;
  failed.id = 777;
  failed.sequence = 2;
  ranks.positions.note(failed, true);  // while it is open
  CHECK(ranks.positions.communicators().at(0xabc).at(1).sequence() == 2);
  failed.sequence = 0;
  failed.fail(4);
  ranks.positions.note(failed, false);
  CHECK(ranks.positions.communicators().at(0xabc).at(1).sequence() == 1);
}

TEST_CASE("Ranks that have not come to make a communicator are listed") {
  Positions positions;
  for (std::uint32_t rank : {0U, 2U}) {
    SampleCall call("ncclCommInitRankConfig", {0x7000, 4, rank, 0, 0,  0,  1,  2,  3,  4,  5,
                                               6,      7, 8,    9, 10, 11, 12, 13, 14, 15, 16});
    call.details.identity = 0xabc;
    call.pid = 100 + rank;
    call.ts = SECOND;
    positions.note(call, true);
  }
  CHECK(judge(positions, {}, 30 * SECOND, LIMIT, 0).communicators.empty());
  Hang hang = judge(positions, {}, 31 * SECOND, LIMIT, 0);
  CHECK(hang.kind == Kind::making);
  CHECK(headline(hang) ==
        "2 ranks have come here to make a communicator of 4; not, here: rank 1, 3");
  CHECK(nlohmann::json::parse(as_json(hang, "", 0, LIMIT))["communicators"][0]["absent"] ==
        nlohmann::json({1, 3}));
  positions.begin_open();
  CHECK(judge(positions, {}, 31 * SECOND, LIMIT, 0).communicators.empty());
}
