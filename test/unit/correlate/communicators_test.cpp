#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <span>

#include "correlate/correlating.hpp"
#include "cudabpf/describe.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t COMM = 0x5e00;

samples::Head at(std::uint64_t ts, std::uint32_t pid = 10, std::uint32_t drops = 0) {
  samples::Head head;
  head.ts = ts;
  head.pid = head.tid = pid;
  head.drops = drops;
  return head;
}

struct Ranks : Correlating {
  using Correlating::Correlating;

  void init(std::uint64_t comm, std::uint64_t seed, std::uint64_t rank, std::uint64_t ranks,
            std::uint32_t pid = 10) {
    std::vector<std::uint64_t> words(22);
    words[0] = 0x7000;
    words[1] = 0xdead'0000'0000 | ranks;  // upper halves are garbage
    words[2] = 0xdead'0000'0000 | rank;
    std::iota(words.begin() + 6, words.end(), seed);
    call(at(time += 1000, pid), "ncclCommInitRank", words, {comm});
  }
  // ncclCommInitAll: of `count` ranks, of which these handles were read. Without devices, the list
  // is null.
  const CapturedCall& init_all(const std::vector<std::uint64_t>& handles, std::uint64_t count,
                               const std::vector<std::int32_t>& devices = {}) {
    samples::Head head = at(time += 1000);
    std::uint64_t list = devices.empty() ? 0 : 0x8000;
    std::vector<std::uint64_t> words{0x7000, 0xdead'0000'0000 | count, list};
    feed(samples::entry(head, "ncclCommInitAll", words, std::as_bytes(std::span(devices))));
    head.ts += 100;
    feed(samples::returned(head, "ncclCommInitAll", 0, handles));
    return last();
  }
  const CapturedCall& reduce(std::uint64_t comm, std::uint32_t drops = 0, int result = 0) {
    call(at(time += 1000, 10, drops), "ncclAllReduce", {1, 2, 3, 7, 0, comm, 0}, {}, result);
    return last();
  }
  const CapturedCall& send(std::uint64_t comm, std::uint64_t peer) {
    call(at(time += 1000), "ncclSend", {1, 3, 7, peer, comm, 0});
    return last();
  }
  void other(const char* symbol, const std::vector<std::uint64_t>& words = {},
             const std::vector<std::uint64_t>& outs = {}, int result = 0) {
    call(at(time += 1000), symbol, words, outs, result);
  }

  std::uint64_t time = 1000;
};

const Communicator& of(const CapturedCall& call) {
  REQUIRE(call.own_communicator);
  return *call.own_communicator;
}

}  // namespace

TEST_CASE("Ranks of one communicator have one identity, by the bytes of its id") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 2, 10);
  ranks.init(COMM, 1, 1, 2, 11);
  ranks.init(COMM + 8, 2, 1, 2, 11);
  const auto& calls = ranks.sink.calls;
  CHECK(of(calls[0]).identity == of(calls[1]).identity);
  CHECK(of(calls[0]).identity != of(calls[2]).identity);
  CHECK(of(calls[0]).rank == 0);
  CHECK(of(calls[1]).rank == 1);
  CHECK(of(calls[0]).ranks == 2);
  CHECK(of(calls[0]).made_by == calls[0].id);
  CHECK(of(calls[1]).number == 2);
}

TEST_CASE("One call makes the communicators of all ranks") {
  Ranks ranks;
  std::vector<std::uint64_t> handles{COMM, COMM + 8, COMM + 16};
  const CapturedCall& made = ranks.init_all(handles, 3);
  REQUIRE(made.own_also_made.size() == 2);
  std::vector<Communicator> all{of(made), made.own_also_made[0], made.own_also_made[1]};
  CHECK(all[0].identity);
  for (std::int32_t rank = 0; rank < 3; rank++) {
    const Communicator& one = all[static_cast<std::size_t>(rank)];
    CHECK(one.number == static_cast<std::uint64_t>(rank) + 1);
    CHECK(one.identity == all[0].identity);
    CHECK(one.rank == rank);
    CHECK(one.ranks == 3);
    CHECK(one.device == rank);
    CHECK(one.made_by == made.id);
    CHECK_FALSE(one.late);
    CHECK(of(ranks.reduce(handles[static_cast<std::size_t>(rank)])).number == one.number);
    CHECK(ranks.last().sequence == 1);
  }
  // Another call's are others, also where the handles are the same.
  CHECK(of(ranks.init_all(handles, 3)).identity != all[0].identity);
  CHECK(of(ranks.last()).number == 4);
  ranks.other("ncclCommSplit", {COMM + 8, 1, 0, 0x7000, 0}, {COMM + 24});
  CHECK(of(ranks.last()).from == 5);
  CHECK(of(ranks.last()).identity);
}

TEST_CASE("Where devices are listed, each rank has the one in its place") {
  Ranks ranks;
  const CapturedCall& made = ranks.init_all({COMM, COMM + 8}, 2, {5, 3});
  CHECK(of(made).device == 5);
  CHECK(made.own_also_made[0].device == 3);
  // The list could not be read, or not all of it.
  CHECK_FALSE(ranks.init_all({COMM, COMM + 8}, 2, {5}).own_also_made[0].device);
}

TEST_CASE("Of a call's communicators, those that were not recorded stay unknown") {
  Ranks ranks;
  // Behind an array may be zeros.
  CHECK(ranks.init_all({COMM, COMM + 8, 0, 0}, 2).own_also_made.size() == 1);
  // There are more than were read.
  CHECK(of(ranks.init_all({COMM, COMM + 8}, 40)).ranks == 40);
  CHECK(ranks.last().own_also_made.size() == 1);
  CHECK(of(ranks.reduce(COMM + 16)).late);
  // None was read, or they are no handles.
  CHECK_FALSE(ranks.init_all({}, 2).own_communicator);
  CHECK_FALSE(ranks.init_all({0, 0}, 2).own_communicator);
  CHECK_FALSE(ranks.init_all({COMM}, 0xffffffff).own_communicator);
  CHECK(ranks.init_all({COMM, COMM}, 2).own_also_made.empty());
}

TEST_CASE("An identity is the same in every trace of every host") {
  std::vector<std::uint64_t> words(16);
  std::iota(words.begin(), words.end(), 1);
  CHECK(identity_of(words) == 0xaf60f9ef308dcd75);
}

TEST_CASE("Operations are counted by communicator, and those between two ranks by peer") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 4);
  CHECK(ranks.reduce(COMM).sequence == 1);
  CHECK(ranks.send(COMM, 1).sequence == 1);
  CHECK(ranks.send(COMM, 2).sequence == 1);
  CHECK(ranks.send(COMM, 1).sequence == 2);
  CHECK(ranks.reduce(COMM).sequence == 2);
  CHECK(ranks.reduce(COMM, 0, 7).sequence == 3);  // in progress
  CHECK(ranks.reduce(COMM, 0, 4).sequence == 0);  // failed, and takes no part
  CHECK(ranks.reduce(COMM).sequence == 4);
  CHECK_FALSE(of(ranks.last()).late);
}

TEST_CASE("What is made of a communicator is known by its parent, its place and its color") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 4);
  ranks.other("ncclCommSplit", {COMM, 7, 3, 0x7000, 0}, {COMM + 8});
  ranks.other("ncclCommSplit", {COMM, 0xffffffff, 3, 0x7000, 0}, {0});  // in no part
  ranks.other("ncclCommSplit", {COMM, 7, 3, 0x7000, 0}, {COMM + 16});
  const Communicator& first = of(ranks.sink.calls[1]);
  CHECK(ranks.sink.calls[2].own_communicator->number == 1);  // the parent
  const Communicator& third = of(ranks.sink.calls[3]);
  CHECK(first.from == 1);
  CHECK(first.ordinal == 1);
  CHECK(third.ordinal == 3);
  CHECK(first.color == 7);
  CHECK(first.key == 3);
  CHECK_FALSE(first.rank);
  CHECK(first.identity);
  CHECK(first.identity != third.identity);
  ranks.other("ncclCommShrink", {COMM, 0x7000, 1, 0x7000, 0, 0}, {COMM + 24});
  CHECK(of(ranks.last()).ordinal == 4);
  CHECK(of(ranks.last()).identity != third.identity);
}

TEST_CASE("A communicator that was there before is late, and known as far as the program asks") {
  Ranks ranks;
  CHECK(of(ranks.reduce(COMM)).late);
  CHECK_FALSE(of(ranks.last()).identity);
  std::uint32_t version = of(ranks.last()).version;
  ranks.other("ncclCommUserRank", {COMM, 0x7000}, {0xdead'0000'0003});
  CHECK(of(ranks.reduce(COMM)).rank == 3);
  CHECK(of(ranks.last()).version > version);
  CHECK_FALSE(of(ranks.last()).ranks);
  ranks.other("ncclCommSplit", {COMM, 7, 3, 0x7000, 0}, {COMM + 8});
  CHECK_FALSE(of(ranks.last()).identity);  // how many came before is not known
}

TEST_CASE("What is no communicator becomes none") {
  Ranks ranks;
  CHECK_FALSE(ranks.reduce(0).own_communicator);
  CHECK_FALSE(ranks.reduce(0x1234, 0, 4).own_communicator);
  ranks.init(COMM, 1, 0, 4);
  CHECK(of(ranks.last()).number > 0);
}

TEST_CASE("A handle that is given out again is another communicator's") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 2);
  ranks.reduce(COMM);
  ranks.other("ncclCommDestroy", {COMM});
  CHECK(of(ranks.last()).number == 1);
  ranks.init(COMM, 2, 1, 2);
  CHECK(of(ranks.reduce(COMM)).number == 2);
  CHECK(ranks.last().sequence == 1);
  ranks.init(COMM, 3, 1, 2);  // the end was not seen
  CHECK(of(ranks.reduce(COMM)).number == 3);
}

TEST_CASE("After a loss a communicator's numbers are not certain") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 2);
  CHECK_FALSE(of(ranks.reduce(COMM)).lost);
  CHECK(of(ranks.reduce(COMM, 1)).lost);
  ranks.init(COMM + 8, 1, 0, 2, 11);
  CHECK_FALSE(of(ranks.last()).lost);
}

TEST_CASE("Groups nest, and belong to a thread") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 2);
  ranks.other("ncclGroupStart");
  std::uint64_t group = ranks.last().group;
  CHECK(group != 0);
  ranks.other("ncclGroupStart");
  CHECK(ranks.reduce(COMM).group == group);
  ranks.other("ncclGroupEnd");
  CHECK(ranks.reduce(COMM).group == group);
  ranks.other("ncclGroupEnd");
  CHECK(ranks.last().group == group);
  CHECK(ranks.reduce(COMM).group == 0);
  ranks.other("ncclGroupEnd", {}, {}, 5);  // without a start
  CHECK(ranks.last().group == 0);
  ranks.other("ncclGroupStart");
  CHECK(ranks.last().group == group + 1);
}

TEST_CASE("A part of another call of NCCL is no operation of its own") {
  Ranks ranks;
  ranks.init(COMM, 1, 0, 2);
  samples::Head outer = at(50'000), inner = at(50'010);
  outer.sp = 0x2000;
  inner.sp = 0x1000;
  ranks.feed(samples::entry(outer, "ncclBcast", {1, 3, 7, 0, COMM, 0}));
  ranks.feed(samples::entry(inner, "ncclBroadcast", {1, 1, 3, 7, 0, COMM, 0}));
  ranks.feed(samples::returned(inner, "ncclBroadcast", 0));
  CHECK_FALSE(ranks.last().own_communicator);
  CHECK(ranks.last().sequence == 0);
  ranks.feed(samples::returned(outer, "ncclBcast", 0));
  CHECK(ranks.last().sequence == 1);
}

TEST_CASE("As many communicators are kept as there is room for") {
  Correlator::Options options;
  options.limits.of(Kept::communicators) = 3;
  Ranks ranks(std::move(options));
  for (std::uint64_t i = 0; i < 3; i++) ranks.init(COMM + i, i, 0, 2);
  CHECK(ranks.last().own_communicator);
  ranks.init(COMM + 3, 9, 0, 2);
  CHECK_FALSE(ranks.last().own_communicator);
  CHECK_FALSE(ranks.reduce(COMM + 3).own_communicator);
  CHECK(ranks.correlator.bounds().all_left_out(Kept::communicators) == 2);
  CHECK(ranks.send(COMM, 1).sequence == 0);  // no room for a pair
  ranks.other("ncclCommDestroy", {COMM + 1});
  CHECK(ranks.send(COMM, 1).sequence == 1);
}
