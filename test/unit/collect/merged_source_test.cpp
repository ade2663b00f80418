#include "collect/merged_source.hpp"

#include <catch2/catch_test_macros.hpp>

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/sample_records.hpp"
#include "support/sample_source.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint32_t THREAD = 100, OTHER = 101;
constexpr std::uint64_t LATER = 3'600'000'000'000;  // in an hour

struct Merging {
  Merging() {
    auto made = std::make_unique<SampleSource>(), more = std::make_unique<SampleSource>();
    calls = made.get();
    others = more.get();
    calls->waits = others->waits = false;
    merged =
        std::make_unique<MergedSource>(std::move(made), std::move(more), MergedSource::Of::others);
    REQUIRE(merged->start([this](std::span<const std::byte> record) {
      abi::cb_head head;
      std::memcpy(&head, record.data(), sizeof(head));
      heads.push_back(head);
    }));
  }
  static void add(SampleSource& source, std::uint64_t ts, std::uint32_t tid = THREAD,
                  std::uint32_t drops = 0) {
    source.records.push_back(
        entry({.ts = ts, .tid = tid, .drops = drops}, "cuInit", {source.begun}));
  }
  // When what has been handed over was made, and by which thread.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> taken() {
    merged->poll();
    std::vector<std::pair<std::uint64_t, std::uint32_t>> made;
    for (const abi::cb_head& head : heads) made.emplace_back(head.ts, head.tid);
    heads.clear();
    return made;
  }

  SampleSource *calls = nullptr, *others = nullptr;
  std::unique_ptr<MergedSource> merged;
  std::vector<abi::cb_head> heads;
};

using Made = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

}  // namespace

TEST_CASE("What is kept of a thread that is never idle does not grow") {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  SKIP("AddressSanitizer keeps what has been freed");
#endif
#endif
  Merging m;
  auto resident = [] {
    std::size_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  };
  std::size_t before = resident();
  std::size_t count = 0;
  for (int i = 0; i < 400'000; i++) {
    // The second has to wait for 20 ms, and what comes behind it, too.
    m.add(*m.others, now_ns(CLOCK_MONOTONIC));
    m.add(*m.others, now_ns(CLOCK_MONOTONIC) + 20'000'000);
    count += m.taken().size();
  }
  CHECK(count > 1000);
  CHECK(resident() - before < 8u << 20);
}

TEST_CASE("Records of two sources come in the order in which they were made") {
  Merging m;
  for (std::uint64_t ts : {10, 30, 50}) m.add(*m.calls, ts);
  for (std::uint64_t ts : {20, 40}) m.add(*m.others, ts);
  CHECK(m.taken() == Made{{10, THREAD}, {20, THREAD}, {30, THREAD}, {40, THREAD}, {50, THREAD}});
  CHECK(m.taken().empty());
}

TEST_CASE("A thread's records keep their order where several threads' do not come by time") {
  Merging m;
  m.add(*m.others, 40);
  m.add(*m.others, 20, OTHER);  // another CPU's ring was read later
  m.add(*m.calls, 30, OTHER);
  m.add(*m.calls, 10);
  CHECK(m.taken() == Made{{10, THREAD}, {20, OTHER}, {30, OTHER}, {40, THREAD}});
}

TEST_CASE("What was made while the sources are polled waits for what may have come before it") {
  Merging m;
  std::uint64_t later = now_ns(CLOCK_MONOTONIC) + LATER;
  m.add(*m.calls, 10);
  m.add(*m.calls, later);
  m.add(*m.others, later + 1);
  CHECK(m.taken() == Made{{10, THREAD}});
  m.add(*m.others, later - 1, OTHER);
  CHECK(m.taken().empty());
  m.merged->stop();  // nothing can come before it any more
  CHECK(m.taken() == Made{{later - 1, OTHER}, {later, THREAD}, {later + 1, THREAD}});
}

TEST_CASE("What one source has not completely reported waits at the other, too") {
  Merging m;
  m.calls->read_until = 25;  // a record of then is still being written
  m.add(*m.others, 20);
  m.add(*m.others, 40);
  CHECK(m.taken() == Made{{20, THREAD}});
  CHECK(m.merged->poll().until == 25);
  m.calls->read_until = 50;
  m.add(*m.calls, 30);
  CHECK(m.taken() == Made{{30, THREAD}, {40, THREAD}});
}

TEST_CASE("A record has the number of those that its thread has lost at both sources") {
  Merging m;
  m.add(*m.calls, 10, THREAD, 0);
  m.add(*m.others, 20, THREAD, 2);
  m.add(*m.calls, 30, THREAD, 1);
  m.add(*m.calls, 40, OTHER, 0);
  m.taken();
  m.add(*m.others, 50, THREAD, 5);
  m.merged->poll();
  CHECK(m.heads.back().drops == 6);
  m.heads.clear();
  m.add(*m.calls, 60, THREAD, 1);
  m.add(*m.calls, 70, OTHER, 0);
  m.merged->poll();
  REQUIRE(m.heads.size() == 2);
  CHECK(m.heads[0].drops == 6);
  CHECK(m.heads[1].drops == 0);
  m.calls->dropped = 3;
  m.others->dropped = 4;
  CHECK(m.merged->drops({THREAD, THREAD}) == 7);
}

TEST_CASE("A source that is behind holds up only a bounded part of the other") {
  Merging m;
  constexpr std::uint64_t RECORD_SIZE = 4096, AT_ONCE = 4096;  // 16 MiB at each poll
  m.calls->read_until = 25;
  m.others->waits = true;
  std::uint64_t ts = 30, polls = 0;
  m.others->on_poll = [&](std::size_t) {
    std::vector<std::uint64_t> words(6);
    std::string text(RECORD_SIZE - sizeof(abi::cb_head) - 6 * 8 - 1, 'x');
    auto record = entry({.tid = THREAD}, "cuInit", words, {}, text.c_str());
    for (std::uint64_t i = 0; i < AT_ONCE && polls < 20; i++) {
      record.head().ts = ts++;
      m.others->on_record(record.bytes());
    }
    polls++;
  };
  for (int i = 0; i < 10; i++) CHECK(m.merged->poll().until == 25);
  CHECK(polls == 4);  // 64 MiB wait
  CHECK(m.merged->poll().unfinished);
  m.calls->read_until = ts;
  m.merged->poll();  // hands over what waited
  CHECK(m.heads.size() == 4 * AT_ONCE);
  CHECK_FALSE(m.merged->poll().unfinished);
  CHECK(polls == 5);
}

TEST_CASE("The number of threads whose losses are kept has a bound") {
  Merging m;
  constexpr std::uint32_t OTHER_PROCESS = 200, MANY = 1 << 16;
  auto add = [&](SampleSource& source, std::uint32_t pid, std::uint32_t tid, std::uint32_t drops) {
    source.records.push_back(
        entry({.ts = 10, .pid = pid, .tid = tid, .drops = drops}, "cuInit", {source.begun}));
    m.merged->poll();
    std::uint32_t lost = m.heads.back().drops;
    m.heads.clear();
    return lost;
  };
  CHECK(add(*m.calls, 100, THREAD, 1) == 1);
  for (std::uint32_t i = 0; i < MANY; i++) add(*m.calls, OTHER_PROCESS, MANY + i, 1);
  CHECK(add(*m.others, 100, THREAD, 2) == 3);
  // The process with the most entries is the one that is forgotten.
  CHECK(add(*m.others, OTHER_PROCESS, MANY, 2) == 2);
}

TEST_CASE("Both sources forget what is forgotten, and give up what is given up") {
  Merging m;
  m.merged->forget_process(7);
  m.merged->abandon();
  for (SampleSource* source : {m.calls, m.others}) {
    CHECK(source->forgotten == std::vector<std::uint32_t>{7});
    CHECK(source->abandoned == 1);
  }
}

TEST_CASE("Losses and books are those of both sources") {
  Merging m;
  LossEvent loss;
  loss.reason = Loss::process_inconsistent;
  m.calls->found = {loss};
  m.others->found = {loss, loss};
  CHECK(m.merged->audit(false).size() == 3);
  CHECK_FALSE((m.calls->closed || m.others->closed));
  CHECK(m.merged->audit(true).empty());
  CHECK((m.calls->closed && m.others->closed));
  m.calls->lost[static_cast<std::size_t>(Loss::ring_entry)] = 3;
  m.others->lost[static_cast<std::size_t>(Loss::ring_driver)] = 4;
  Source::Losses losses = m.merged->losses();
  CHECK(losses[static_cast<std::size_t>(Loss::ring_entry)] == 3);
  CHECK(losses[static_cast<std::size_t>(Loss::ring_driver)] == 4);
  Accounts accounts = m.merged->accounts();
  CHECK(accounts.entered == 18);
  CHECK(accounts.emitted == 14);
  CHECK(accounts.dropped == 4);
}

TEST_CASE("A source that does not start keeps both from starting") {
  for (bool first : {true, false}) {
    auto calls = std::make_unique<SampleSource>(), others = std::make_unique<SampleSource>();
    (first ? calls : others)->refuses = true;
    MergedSource merged(std::move(calls), std::move(others), MergedSource::Of::others);
    CHECK_FALSE(merged.start([](std::span<const std::byte>) {}));
  }
}
