#include "capture/capture.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "support/capture_sink.hpp"
#include "support/gpu_records.hpp"
#include "support/sample_records.hpp"
#include "support/sample_source.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

constexpr std::uint32_t NO_PROCESS = 4'000'000'000;  // no pid of any machine

struct Capturing {
  explicit Capturing(FunctionFilter filter = {}) {
    auto made = std::make_unique<SampleSource>();
    source = made.get();
    capture = std::make_unique<Capture>(std::move(made), std::move(filter));
    capture->describe(session);
  }
  void start() { REQUIRE(capture->start(sink, session)); }
  // A call of cuInit, this many ns after the trace began.
  void call(std::uint64_t at, int result = 0, std::uint32_t tid = NO_PROCESS) {
    Head head{.ts = source->begun + at, .pid = NO_PROCESS, .tid = tid};
    source->records.push_back(entry(head, "cuInit", {0}));
    head.ts += 100;
    source->records.push_back(returned(head, "cuInit", result));
  }
  std::vector<const LossEvent*> losses_of(Loss reason) const {
    std::vector<const LossEvent*> found;
    for (const LossEvent& loss : sink.losses)
      if (loss.reason == reason) found.push_back(&loss);
    return found;
  }

  CaptureSink sink;
  Session session;
  SampleSource* source = nullptr;
  std::unique_ptr<Capture> capture;
};

std::uint64_t& count(Source::Losses& losses, Loss reason) {
  return losses[static_cast<std::size_t>(reason)];
}

}  // namespace

TEST_CASE("A capture's header says what is traced, and when it began by three clocks") {
  Capturing c({.profile = Profile::light,
               .only = {"cu*"},
               .exclude = {"cuInit"},
               .libraries = {ApiId::cuda},
               .returns = false});
  CHECK(c.session.only_libraries == std::vector<std::string>{"cuda"});
  CHECK(c.session.profile == "light");
  CHECK(c.session.only == std::vector<std::string>{"cu*"});
  CHECK(c.session.exclude == std::vector<std::string>{"cuInit"});
  CHECK_FALSE(c.session.returns);
  CHECK(c.session.driver == "580.159.04");  // as the source reports
  CHECK(c.session.monotonic_ns == c.source->begun);
  CHECK(c.session.boottime_ns >= c.session.monotonic_ns);
  CHECK(c.session.realtime_ns > 0);
  c.start();
  REQUIRE(c.sink.session);
  CHECK(c.sink.session->profile == "light");
  c.capture->stop("interrupted", std::nullopt);
}

TEST_CASE("Records that wait when a capture is stopped are in it, and the books say so") {
  Capturing c;
  c.start();
  c.call(0);
  c.call(1000, 2);
  Totals totals = c.capture->stop("command ended", 3);
  REQUIRE(c.sink.calls.size() == 2);
  CHECK(c.sink.calls[0].ts == 0);
  CHECK(c.sink.calls[1].ts == 1000);
  CHECK(c.sink.calls[1].duration == 100);
  CHECK(c.sink.calls[1].result == 2);
  CHECK(totals.counts.calls == 2);
  CHECK(totals.counts.unfinished == 0);
  CHECK(totals.accounts.entered == 9);
  CHECK(totals.accounts.emitted == 7);
  CHECK(totals.accounts.dropped == 2);
  CHECK(totals.accounts.received == 4);
  CHECK(totals.reason == "command ended");
  CHECK(totals.command_status == 3);
  CHECK(totals.duration_ns > 0);
  REQUIRE(c.sink.totals);
  CHECK(c.sink.totals->accounts.received == 4);
  CHECK(c.sink.losses.empty());
}

TEST_CASE("Bytes that are no record are counted, and lose no others") {
  Capturing c;
  c.start();
  c.source->records.emplace_back(0);
  c.source->records.emplace_back(3);
  c.call(5);
  RecordBytes odd = thread_exit({.ts = c.source->begun});
  odd.head().kind = 200;
  c.source->records.push_back(odd);
  c.source->records.push_back(entry({.ts = c.source->begun}, 0xffff));  // no function
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  CHECK(c.sink.calls.size() == 1);
  CHECK(totals.accounts.received == 6);
  CHECK(count(totals.losses, Loss::bad_record) == 4);
  auto losses = c.losses_of(Loss::bad_record);
  std::uint64_t all = 0;
  for (const LossEvent* loss : losses) all += loss->count.value_or(0);
  CHECK(all == 4);
}

TEST_CASE("What the source has lost is reported once, as much as came since") {
  Capturing c;
  count(c.source->lost, Loss::ring_entry) = 5;
  c.start();
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  std::uint64_t all = 0;
  for (const LossEvent* loss : c.losses_of(Loss::ring_entry)) all += loss->count.value_or(0);
  CHECK(all == 5);
  CHECK(count(totals.losses, Loss::ring_entry) == 5);
  CHECK(c.sink.losses.size() == c.losses_of(Loss::ring_entry).size());
}

TEST_CASE("What is counted of calls reaches the sink, and the books are the source's") {
  Capturing c({.only = {}, .exclude = {}, .tally = true});
  c.source->tallies.functions = {
      {.pid = NO_PROCESS, .function = find_function("cuInit"), .calls = 3, .last = true}};
  c.start();
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  REQUIRE(c.sink.tallies.size() == 1);  // there is nothing to report the other times
  REQUIRE(c.sink.tallies[0].functions.size() == 1);
  CHECK(c.sink.tallies[0].functions[0].pid == NO_PROCESS);
  CHECK(c.sink.tallies[0].functions[0].calls == 3);
  CHECK(c.sink.tallies[0].functions[0].last);
  CHECK(totals.tallied.begun == 5);
  CHECK(totals.tallied.under_way == 1);
  CHECK(c.session.left_out == std::vector<std::string>{"launches", "copies", "waits"});
}

TEST_CASE("Samples of GPUs come as news, and those that are not taken in time are counted") {
  Capturing c;
  c.start();
  auto sample = [&](std::size_t count) {
    News news;
    news.gpu_samples.resize(count);
    news.gpu_samples.front().ts = 7;
    c.capture->note(std::move(news));
  };
  sample(2);
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  CHECK(c.sink.gpu_samples.size() == 2);
  CHECK(c.sink.losses.empty());

  Capturing slow;  // its reader has not begun
  slow.capture->note({});
  News many;
  many.gpu_samples.resize(1 << 14);
  slow.capture->note(std::move(many));
  News more;
  more.gpu_samples.resize(3);
  slow.capture->note(std::move(more));
  slow.start();
  totals = slow.capture->stop("interrupted", std::nullopt);
  CHECK(slow.sink.gpu_samples.size() == 1 << 14);
  CHECK(count(totals.losses, Loss::gpu_sample) == 3);
}

TEST_CASE("News of a source reaches the trace, the last as well") {
  Capturing c;
  c.start();
  Library early, late;
  early.path = "/early/libcuda.so.1";
  late.path = "/late/libcuda.so.1";
  c.source->news.libraries.push_back(early);
  c.source->news.losses.push_back({Loss::late_library, std::nullopt, 1, 2, "early"});
  c.source->last_news.libraries.push_back(late);
  c.source->last_news.losses.push_back({Loss::watch_overrun, 7, 3, 4, {}});
  c.capture->look();
  c.capture->look();  // which has nothing to add
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  REQUIRE(c.sink.libraries.size() == 2);
  CHECK(c.sink.libraries[0].path == early.path);
  CHECK(c.sink.libraries[1].path == late.path);
  REQUIRE(c.sink.losses.size() == 2);
  CHECK_FALSE(c.sink.losses[0].count);
  CHECK(c.sink.losses[0].detail == "early");
  // A loss of unknown size counts as one.
  CHECK(count(totals.losses, Loss::late_library) == 1);
  CHECK(count(totals.losses, Loss::watch_overrun) == 7);
}

TEST_CASE(
    "A call that is open when a capture is stopped is unfinished; what came later is not in it") {
  Capturing c;
  c.start();
  Head head{.ts = c.source->begun, .pid = NO_PROCESS, .tid = NO_PROCESS};
  c.source->records.push_back(entry(head, "cuCtxSynchronize"));
  constexpr std::uint64_t HOUR = 3'600'000'000'000;
  c.call(HOUR, 0, NO_PROCESS + 1);
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  REQUIRE(c.sink.calls.size() == 1);
  CHECK(c.sink.calls[0].unfinished);
  CHECK(c.sink.calls[0].function->symbol == "cuCtxSynchronize");
  CHECK(totals.counts.unfinished == 1);
}

TEST_CASE("An announced process is reported as /proc has it, and runs until it is seen to end") {
  Capturing c;
  auto own = static_cast<std::uint32_t>(getpid());
  c.capture->announce(own);
  c.start();  // which reports it at once
  REQUIRE(c.sink.processes.size() == 1);
  CHECK(c.sink.processes[0].op == Process::Op::start);
  CHECK(c.sink.processes[0].pid == own);
  CHECK_FALSE(c.sink.processes[0].exe.empty());
  CHECK_FALSE(c.capture->all_ended());
  CHECK(c.capture->processes() == 1);
  c.capture->stop("interrupted", std::nullopt);
}

TEST_CASE(
    "What a source finds out about single processes is reported as it comes, and at the end") {
  Capturing c;
  LossEvent loss;
  loss.reason = Loss::process_inconsistent;
  loss.detail = "pid 7 (a)";
  c.source->found = {loss, loss};
  c.start();
  Totals totals = c.capture->stop("interrupted", std::nullopt);
  CHECK(c.source->closed);
  auto losses = c.losses_of(Loss::process_inconsistent);
  REQUIRE(losses.size() == 2);
  for (const LossEvent* one : losses) {
    CHECK(one->detail == "pid 7 (a)");
    CHECK_FALSE(one->count);
    CHECK(one->since <= one->until);
    CHECK(one->until > 0);
  }
  CHECK(count(totals.losses, Loss::process_inconsistent) == 2);
  CHECK(c.sink.losses.size() == 2);
}

TEST_CASE("The end of a process that ended before it was selected is not waited for") {
  Capturing c;
  auto end_within = [&c](std::chrono::milliseconds time) {
    auto until = std::chrono::steady_clock::now() + time;
    c.source->alive = false;
    while (!c.capture->all_ended() && std::chrono::steady_clock::now() < until) {
    }
    return c.capture->all_ended();
  };
  c.capture->announce(NO_PROCESS);
  std::vector<std::uint32_t> forgotten;
  SECTION("its end has no record") {
    c.start();
    CHECK_FALSE(c.capture->all_ended());
    CHECK(end_within(std::chrono::seconds(30)));
    forgotten = {NO_PROCESS};  // by the source, too: its pid may be used again
  }
  SECTION("but records that are still to be read may report it") {
    c.source->read_until = c.source->begun;
    c.start();
    CHECK_FALSE(end_within(std::chrono::milliseconds(500)));
  }
  c.capture->stop("interrupted", std::nullopt);
  CHECK(c.source->forgotten == forgotten);
}

TEST_CASE("A source that hands over a part at a time is read to its end, but not for ever") {
  Capturing c;
  SECTION("it comes to its end") {
    c.source->on_poll = [&](std::size_t number) { c.source->unfinished = number < 20; };
    c.call(1000);
    c.start();
    c.capture->stop("interrupted", std::nullopt);
    CHECK(c.source->polls > 20);
    CHECK(c.source->abandoned == 0);
  }
  SECTION("it does not") {
    c.source->unfinished = true;
    c.call(1000);
    c.start();
    CHECK_FALSE(c.capture->all_ended());  // it is not known
    c.capture->stop("interrupted", std::nullopt);
    CHECK(c.source->abandoned == 1);
  }
  CHECK(c.sink.calls.size() == 1);
}

TEST_CASE("With no process traced all have ended") {
  Capturing c;
  c.start();
  CHECK(c.capture->all_ended());
  c.capture->stop("interrupted", std::nullopt);
}

TEST_CASE("What GPUs did waits for calls that a slow look at the records had passed by") {
  Capturing c;
  c.source->waits = false;
  c.source->on_poll = [&](std::size_t number) {
    auto moment = [&](std::uint64_t past) {
      return Head{.ts = c.source->begun + past, .pid = NO_PROCESS, .tid = NO_PROCESS};
    };
    if (number == 0) {
      c.source->records.push_back(gpu_times(moment(0)));
    } else if (number == 1) {
      // The thread's records have been looked at, and now it calls.
      const Head head{.ts = now_ns(CLOCK_MONOTONIC), .pid = NO_PROCESS, .tid = NO_PROCESS};
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      GpuPlace place{.thread = NO_PROCESS};
      c.source->records.push_back(gpu_copy(head, place, 1, head.ts, 64));
      c.source->records.push_back(gpu_batch(head, place, 1, head.ts - 10));
    } else if (number == 2) {
      c.source->records.push_back(entry(moment(10), "cuMemcpyHtoD_v2", {0x7000, 0x8000, 64}));
      c.source->records.push_back(returned(moment(20), "cuMemcpyHtoD_v2", 0));
    }
  };
  c.start();
  while (c.source->polls < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  c.capture->stop("interrupted", std::nullopt);
  REQUIRE(c.sink.gpu_operations.size() == 1);
  CHECK(c.sink.gpu_operations[0].call == 1);
  CHECK(c.sink.gpu_operations[0].why_not == Unjoined::none);
}

TEST_CASE("A source that cannot start leaves no header") {
  Capturing c;
  c.source->refuses = true;
  auto started = c.capture->start(c.sink, c.session);
  REQUIRE_FALSE(started);
  CHECK(started.error().message == "no kernel");
  CHECK_FALSE(c.sink.session);
}

TEST_CASE("A capture that is thrown away ends its trace and says that it failed") {
  Capturing c;
  c.start();
  c.capture.reset();
  REQUIRE(c.sink.totals);
  CHECK(c.sink.totals->reason == "failed");
  CHECK_FALSE(c.sink.totals->command_status);
}
