// A source whose records a test makes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/source.hpp"
#include "support/sample_records.hpp"
#include "util/system/clock.hpp"

namespace samples {

using namespace cudabpf;

struct SampleSource : Source {
  void describe(Session& session) const override { session.driver = "580.159.04"; }
  void begin(std::uint64_t begin_ns) override { begun = begin_ns; }
  Result<> start(OnRecord to) override {
    if (refuses) return Error{"no kernel", {}};
    on_record = std::move(to);
    return ok();
  }
  void select_process(std::uint32_t) override {}
  void select_cgroup(const CgroupFolder&) override {}
  void select_all() override {}
  std::vector<int> watch_fds() const override { return {}; }
  News look() override { return std::exchange(news, {}); }
  News last_look() override { return std::exchange(last_news, {}); }
  void stop() override { stopped = true; }
  bool waits_for_libraries() const override { return false; }
  std::size_t awaited() const override { return 0; }
  std::size_t libraries_attached() const override { return 1; }
  Capabilities needs() const override { return {}; }
  Polled poll() override {
    std::uint64_t now = now_ns(CLOCK_MONOTONIC);
    if (on_poll) on_poll(polls);
    polls++;
    while ((stopped || !waits) && !records.empty()) {
      on_record(records.front().bytes());
      records.pop_front();
    }
    return {.much = false, .until = read_until.value_or(now), .unfinished = unfinished};
  }
  void abandon() override { abandoned++; }
  std::vector<LossEvent> audit(bool last) override {
    closed |= last;
    return std::exchange(found, {});
  }
  void forget_process(std::uint32_t pid) override { forgotten.push_back(pid); }
  const Function* function(std::uint16_t number) const override {
    auto table = cuda_functions();
    return number < table.size() ? &table[number] : nullptr;
  }
  DriverDevice device(std::uint32_t) const override { return {}; }
  Tallies take_tallies() override { return std::exchange(tallies, {}); }
  std::uint32_t drops(ThreadId) const override { return dropped; }
  bool may_miss_exits() const override { return false; }
  bool is_alive(std::uint32_t) const override { return alive; }
  Losses losses() const override { return lost; }
  Accounts accounts() const override {
    return {.entered = 9, .emitted = 7, .dropped = 2, .received = 0};
  }
  TallyAccounts tally_accounts() const override {
    return {.begun = 5, .ended = 3, .under_way = 1, .dropped = 1};
  }

  Tallies tallies;
  std::uint64_t begun = 0;
  bool refuses = false;
  bool waits = true;  // records wait until tracing is stopped, so that a test has them in one go
  std::function<void(std::size_t number)> on_poll;  // before anything is handed over
  std::atomic<std::size_t> polls{0};
  std::optional<std::uint64_t> read_until;  // empty: when it is polled
  bool unfinished = false;
  std::atomic<std::size_t> abandoned{0};
  std::vector<std::uint32_t> forgotten;
  std::uint32_t dropped = 0;
  std::atomic<bool> stopped{false};
  std::atomic<bool> alive{true};  // every process
  OnRecord on_record;
  std::deque<RecordBytes> records;
  News news, last_news;
  Losses lost{};
  std::vector<LossEvent> found;  // by the next audit
  bool closed = false;
};

}  // namespace samples
