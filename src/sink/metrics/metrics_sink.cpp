#include "sink/metrics/metrics_sink.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include "util/console/log.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

constexpr double NS_IN_A_SECOND = 1e9;

// 0: the system does not say.
std::uint64_t resident_bytes() {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                       &std::fclose);
  unsigned long long all = 0, resident = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &all, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void MetricsSink::begin(const Session& session) {
  std::lock_guard lock(mutex_);
  version_ = session.version;
  start_ns_ = session.realtime_ns;
  ledger_.tick(now_ns(CLOCK_MONOTONIC));
  ledger_.begin(session);
}

void MetricsSink::tallied(const Tallies& tallies) {
  std::lock_guard lock(mutex_);
  ledger_.tallied(tallies);
  times_tallied_++;
  tallied_.notify_all();
}

// Between scrapes only so that there is room for the sums of processes that come and go.
std::uint64_t MetricsSink::oldest_tallies_ns() const {
  constexpr std::uint64_t BETWEEN_SCRAPES_NS = 500'000'000;
  return wanted_ ? 0 : BETWEEN_SCRAPES_NS;
}

void MetricsSink::flush() {
  constexpr std::uint64_t LOOK_EVERY_NS = 10'000'000'000;
  std::unique_lock lock(mutex_);
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  ledger_.tick(now);
  if (now - looked_at_ < LOOK_EVERY_NS) return;
  looked_at_ = now;
  ledger_.look_for_lost_ends(
      [](std::uint32_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH; });
  if (warned_of_pods_ || ledger_.unreadable_pods().empty()) return;
  warned_of_pods_ = true;
  std::string why = ledger_.unreadable_pods();
  lock.unlock();
  log::warning("pods are shown by their uids: {}", why);
}

void MetricsSink::end(const Totals&) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  tallied_.notify_all();
}

MetricsPage MetricsSink::page() {
  constexpr auto PATIENCE = std::chrono::milliseconds(200);
  MetricsPage page;
  {
    std::unique_lock lock(mutex_);
    // What is being read now may have begun before this was asked.
    std::uint64_t enough = times_tallied_ + 2;
    wanted_++;
    tallied_.wait_for(lock, PATIENCE, [&] { return ended_ || times_tallied_ >= enough; });
    wanted_--;
    page.sums = ledger_.page();
    page.own.version = version_;
    page.own.start_ns = start_ns_;
  }
  page.own.now_ns = now_ns(CLOCK_REALTIME);
  page.own.cpu_seconds = static_cast<double>(now_ns(CLOCK_PROCESS_CPUTIME_ID)) / NS_IN_A_SECOND;
  page.own.memory = resident_bytes();
  return page;
}

void MetricsSink::reached(MetricsReader reader, std::uint64_t page_number) {
  std::lock_guard lock(mutex_);
  ledger_.reached(reader, page_number);
}

}  // namespace cudabpf
