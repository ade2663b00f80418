// Entries and returns that did not come.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>

#include "correlating.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("A lost return") {
  Correlating c;
  SECTION("is noticed at the next call from the same place") {
    c.feed(entry({.ts = 10}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .drops = 1}, "cuInit", {0}));
    c.feed(returned({.ts = 35, .drops = 1}, "cuInit"));
    CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit took 5\n");
  }
  SECTION("or at one from further up") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 20, .sp = 0xf00}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .sp = 0x1100, .drops = 2}, "cuInit", {0}));
    CHECK(c.calls() == "2 cuInit in 1 return_lost\n1 cuInit return_lost\n");
  }
  SECTION("or when the call around it returns, which then may be another") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 20, .sp = 0xf00}, "cuCtxSynchronize"));
    c.feed(returned({.ts = 90, .sp = 0x1000, .drops = 1}, "cuInit"));
    CHECK(c.calls() ==
          "2 cuCtxSynchronize in 1 return_lost\n1 cuInit return_lost\n3 cuInit entry_lost\n");
  }
  SECTION("and a later call deeper down is not said to be inside") {
    c.feed(entry({.ts = 10, .sp = 0x1000}, "cuInit", {0}));
    c.feed(entry({.ts = 30, .sp = 0xf00, .drops = 1}, "cuInit", {0}));
    c.feed(returned({.ts = 35, .sp = 0xf00, .drops = 1}, "cuInit"));
    CHECK(c.calls() == "2 cuInit took 5\n");
  }
}

TEST_CASE("A lost entry, or a call that began before the trace") {
  Correlating c;
  c.feed(returned({.ts = 35}, "cuMemAlloc_v2", 0, {0x7f00}));
  CHECK(c.calls() == "1 cuMemAlloc_v2 entry_lost\n");
  CHECK(c.last().ts == 35);
  CHECK(c.last().result == 0);
  CHECK(c.last().own_words.empty());
  CHECK(c.last().details.ptr == 0x7f00);  // what it returned is known
  CHECK_FALSE(c.last().details.size);
  c.feed(returned({.ts = 36}, "cuMemAlloc_v2", 2));
  CHECK(c.last().result == 2);
  CHECK_FALSE(c.last().details.ptr);

  SECTION("ends what was open below it") {
    c.feed(entry({.ts = 40, .sp = 0xf00}, "cuInit", {0}));
    c.feed(returned({.ts = 50, .sp = 0x1000, .drops = 1}, "cuCtxSynchronize"));
    CHECK(c.last().parent == 0);
    c.correlator.finish();
    CHECK(c.calls().ends_with("3 cuInit return_lost\n4 cuCtxSynchronize entry_lost\n"));
  }
  SECTION("and leaves open what is above it, but does not say that it was inside") {
    c.feed(entry({.ts = 40, .sp = 0x1000}, "cuInit", {0}));
    c.feed(returned({.ts = 50, .sp = 0xf00, .drops = 1}, "cuCtxSynchronize"));
    CHECK(c.last().parent == 0);
    c.correlator.finish();
    CHECK(c.calls().ends_with("4 cuCtxSynchronize entry_lost\n3 cuInit unfinished\n"));
  }
}

TEST_CASE("A return and the next entry may both be lost: that is no pair") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(returned({.ts = 1'000'000, .drops = 2}, "cuInit"));
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit entry_lost\n");
}

TEST_CASE("longjmp out of a call, then one lost entry: that is no pair either") {
  Correlating c;
  c.feed(entry({.ts = 10}, "cuInit", {0}));
  c.feed(returned({.ts = 1'000'000, .drops = 1}, "cuInit"));
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit entry_lost\n");
}

TEST_CASE("longjmp again and again leaves nothing behind") {
  Correlating c;
  for (std::uint64_t i = 0; i < 100; i++) c.feed(entry({.ts = i}, "cuInit", {0}));
  c.feed(returned({.ts = 105}, "cuInit"));
  CHECK(c.sink.calls.size() >= 98);
  for (std::size_t i = 0; i + 1 < c.sink.calls.size(); i++) CHECK(c.sink.calls[i].return_lost);
  CHECK(c.last().duration == 6);
}

TEST_CASE("Out-pointers that were not kept are missed where the call's beginning was seen") {
  Correlating c;
  auto lost = returned({.ts = 20}, "cuMemAlloc_v2");
  lost.head().flags = abi::CB_OUT_LOST;
  c.feed(lost);  // of a call that began before there were probes
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.last().entry_lost);
  CHECK(c.correlator.outs_missed() == 0);
  c.feed(entry({.ts = 30}, "cuMemAlloc_v2", {0x10, 4096}));
  lost.head().ts = 40;
  c.feed(lost);
  CHECK_FALSE(c.last().entry_lost);
  CHECK(c.correlator.outs_missed() == 1);
}

TEST_CASE("A call whose return was lost does not hang, whatever ended its thread") {
  std::map<std::uint32_t, std::uint32_t> drops;
  Correlating c({.drops_of = [&](ThreadId thread) { return drops[thread.tid]; }});
  c.feed(entry({.ts = 10, .tid = 101}, "cuInit", {0}));
  c.feed(entry({.ts = 11, .tid = 102}, "cuInit", {0}));
  SECTION("the thread") {
    c.feed(thread_exit({.ts = 20, .tid = 101, .drops = 1}));
    c.feed(thread_exit({.ts = 21, .tid = 102}));
  }
  SECTION("the process, of which it was the last") {
    c.feed(process({.ts = 20, .tid = 101, .drops = 1}, abi::CB_EXIT));
  }
  SECTION("the process, and its own end was lost") {
    drops[101] = 2;
    c.feed(process({.ts = 20, .tid = 102}, abi::CB_EXIT));
  }
  SECTION("the trace") {
    drops[101] = 1;
    c.correlator.finish();
  }
  CHECK(c.calls() == "1 cuInit return_lost\n2 cuInit unfinished\n");
}

namespace {

// One thread that makes random nested calls, as the kernel side sees it: which records reach the
// ring is decided at random, and each carries the count of those lost before it.
class Thread {
 public:
  struct TrueCall {
    std::uint64_t begin = 0, end = 0, parent = 0;  // parent: its begin; times are unique
    bool entry_seen = false, return_seen = false, left = false;
  };

  Thread(Correlating& c, std::uint32_t seed, double loss, double jumps, double signals = 0)
      : c_(c), random_(seed), loss_(loss), jumps_(jumps), signals_(signals) {}

  void run(int calls) {
    for (left_ = calls; left_ > 0;) call(0x8000'1000, 0);
    for (; depth_;) depth_--;
  }
  const std::map<std::uint64_t, TrueCall>& truth() const { return truth_; }
  std::uint64_t returned_at(std::uint64_t begin) const { return truth_.at(begin).end; }

 private:
  double chance() { return std::uniform_real_distribution<>(0, 1)(random_); }
  bool send(const RecordBytes& record) {
    // Losses come in bursts, as when the ring is full.
    if (burst_ > 0 ? burst_-- > 0 : chance() < loss_) {
      if (burst_ == 0 && chance() < 0.3) burst_ = static_cast<int>(random_() % 6);
      drops_++;
      return false;
    }
    c_.feed(record);
    return true;
  }
  // Returns false if a longjmp left it.
  bool call(std::uint32_t sp, std::uint64_t parent) {
    static constexpr const char* SYMBOLS[] = {"cuInit", "cuCtxSynchronize", "cuStreamSynchronize"};
    const char* symbol = SYMBOLS[random_() % 3];
    left_--;
    std::uint64_t begin = now_++;
    TrueCall& call = truth_[begin];
    call.begin = begin;
    call.parent = parent;
    call.entry_seen = send(entry({.ts = begin, .sp = sp, .drops = drops_}, symbol, {begin, 0}));
    depth_++;
    bool stays = true;
    if (depth_ < 4 && chance() < signals_)
      this->call(0x9000'1000 + 0x1000'0000u * static_cast<unsigned>(depth_), begin);
    while (stays && depth_ < 6 && left_ > 0 && chance() < 0.4)
      stays =
          this->call(sp - 16 * static_cast<unsigned>(1 + random_() % 3), begin) || chance() < 0.5;
    depth_--;
    if (!stays || chance() < jumps_) {
      call.left = true;
      return false;
    }
    call.end = now_++;
    call.return_seen = send(returned({.ts = call.end, .sp = sp, .drops = drops_}, symbol, 0));
    return true;
  }

  Correlating& c_;
  std::mt19937 random_;
  double loss_, jumps_, signals_;
  std::uint64_t now_ = 1;
  std::uint32_t drops_ = 0xfffffffa;  // the count wraps
  int left_ = 0, depth_ = 0, burst_ = 0;
  std::map<std::uint64_t, TrueCall> truth_;
};

// Each call is in the trace once, or as the halves that were seen, and nothing else is.
void check(const Thread& thread, const Correlating& c, bool with_jumps) {
  std::map<std::uint64_t, std::uint64_t> by_end, by_id;
  for (const auto& [begin, call] : thread.truth())
    if (call.end) by_end[call.end] = begin;
  for (const auto& line : c.sink.calls)
    if (!line.entry_lost) by_id[line.id] = line.ts;
  std::set<std::uint64_t> entries, returns;
  std::size_t pairs = 0, possible = 0;
  std::set<std::string> wrong;  // a check for each line would take ten times as long
  auto expect = [&](bool holds, const char* what) {
    if (!holds) wrong.insert(what);
  };
  for (const auto& line : c.sink.calls) {
    if (line.entry_lost) {
      auto begin = by_end.find(line.ts);
      if (begin == by_end.end()) FAIL("no call returned at " << line.ts);
      expect(returns.insert(begin->second).second, "a return is reported once");
      expect(!line.has_return, "half a call has no result");
      expect(line.parent == 0, "half a call has no parent");
      continue;
    }
    auto known = thread.truth().find(line.ts);
    if (known == thread.truth().end()) FAIL("no call began at " << line.ts);
    const auto& truth = known->second;
    expect(entries.insert(line.ts).second, "an entry is reported once");
    expect(line.words[0] == line.ts, "the arguments are the call's own");
    if (line.has_return) {
      pairs++;
      expect(line.duration == truth.end - truth.begin, "the duration is the true one");
      expect(returns.insert(line.ts).second, "a return is reported once");
    } else {
      expect(line.return_lost != line.unfinished, "a return is lost, or still to come");
    }
    // A parent that is named is the true one; after a longjmp from a call with the same stack
    // pointer, it may be that call.
    if (line.parent && !with_jumps)
      expect(by_id.at(line.parent) == truth.parent, "the parent is the true one");
  }
  for (const auto& [begin, truth] : thread.truth()) {
    expect(entries.contains(begin) == truth.entry_seen, "just the entries that came are reported");
    expect(returns.contains(begin) == truth.return_seen, "just the returns that came are reported");
    possible += truth.entry_seen && truth.return_seen;
  }
  CHECK(wrong == std::set<std::string>{});
  if (!with_jumps) CHECK(pairs * 10 >= possible * 6);  // certainty must not cost too many pairs
}

}  // namespace

TEST_CASE(
    "Whatever is lost, no duration and no parent is wrong, and every record is reported once") {
  for (std::uint32_t seed = 1; seed <= 400; seed++) {
    double loss = seed % 5 * 0.08, jumps = seed % 2 * 0.1;
    CAPTURE(seed, loss, jumps);
    Correlating c;
    Thread thread(c, seed, loss, jumps);
    thread.run(200);
    c.correlator.finish();
    check(thread, c, jumps > 0);
    if (loss == 0 && jumps == 0) {
      std::size_t whole = 0, nested_as_recorded = 0;
      for (const auto& line : c.sink.calls) {
        whole += line.has_return;
        nested_as_recorded += (line.parent != 0) == (thread.truth().at(line.ts).parent != 0);
      }
      CHECK(whole == c.sink.calls.size());
      CHECK(nested_as_recorded == c.sink.calls.size());
    }
  }
}

TEST_CASE("With handlers on stacks of their own, every call that is seen is whole") {
  for (std::uint32_t seed = 1; seed <= 200; seed++) {
    double loss = seed % 4 * 0.08;
    CAPTURE(seed, loss);
    Correlating c;
    Thread thread(c, seed, loss, 0, 0.3);
    thread.run(200);
    c.correlator.finish();
    // A call in a handler is said to be inside a call further out, or none.
    check(thread, c, true);
    auto whole = std::count_if(c.sink.calls.begin(), c.sink.calls.end(),
                               [](const auto& line) { return line.has_return; });
    if (loss == 0) CHECK(whole == std::ssize(c.sink.calls));
  }
}
