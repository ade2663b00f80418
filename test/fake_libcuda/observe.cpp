#include "observe.hpp"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "call_log.hpp"
#include "compute/compute.hpp"
#include "counts.hpp"
#include "driver.hpp"
#include "nodes.hpp"
#include "objects.hpp"
#include "settings.hpp"

namespace fake {

bool watching = false;

namespace {

// The calls that this thread is inside, the innermost last.
struct Inside {
  const Observed* call;
  CurrentCall current;
  bool captured;
  std::string* ran;  // not destroyed at a thread's end: that would keep the library from unloading
};
constexpr int kMaxDepth = 64;
thread_local Inside inside[kMaxDepth];
thread_local int depth = 0;
thread_local uint64_t made = 0;

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

// A sleep is too coarse for a few microseconds.
void wait_until(uint64_t begin_ns, uint64_t nanoseconds) {
  const uint64_t end = begin_ns + nanoseconds;
  if (nanoseconds >= 50000) {
    const timespec time = {static_cast<time_t>(end / 1000000000),
                           static_cast<long>(end % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
    }
  }
  while (now() < end) {
  }
}

void hang_until(const std::string& file) {
  constexpr timespec A_WHILE = {0, 1000000};
  while (file.empty()) pause();
  while (access(file.c_str(), F_OK) != 0) nanosleep(&A_WHILE, nullptr);
}

bool applies(int rule_symbol, uint64_t at, int symbol, uint64_t nth) {
  return rule_symbol == symbol && (at == kEveryCall || at == nth);
}

void before_fork() { state_mutex().lock(); }
void after_fork_in_parent() { state_mutex().unlock(); }
void after_fork_in_child() {
  state_mutex().unlock();
  depth = 0;
  made = 0;
  restart_injection();
  restart_counts();
  restart_call_log();
  restart_node_record();
  driver_forget();
}

__attribute__((constructor)) void start() {
  watching = settings().need_watching();
  if (watching) restart_counts();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

CurrentCall current_call() {
  return depth > 0 ? inside[depth - 1].current : CurrentCall{nullptr, 0};
}

void call_was_captured() {
  if (depth > 0) inside[depth - 1].captured = true;
}

void call_ran(std::string fields) {
  if (depth > 0) inside[depth - 1].ran = new std::string(std::move(fields));
}

Observed::Observed(int symbol, const uint64_t* words, const Passed* passed, int passed_count)
    : symbol_(symbol),
      words_(words),
      passed_(passed),
      passed_count_(passed_count),
      injection_(injection()),
      begin_ns_(now()) {
  while (depth > 0 && inside[depth - 1].call <= this) --depth;  // a callback has left that call
  outer_ = depth;
  if (depth < kMaxDepth) inside[depth++] = {this, {kSymbols[symbol].name, ++made}, false, nullptr};
  const uint64_t nth = count_call(symbol, injection_);
  for (const Hang& hang : settings().hangs) {
    if (applies(hang.symbol, hang.at, symbol, nth)) hang_until(hang.until);
  }
  for (const Delay& delay : settings().delays) {
    if (delay.symbol == symbol) wait_until(begin_ns_, delay.nanoseconds);
  }
  for (const Failure& failure : settings().failures) {
    if (applies(failure.symbol, failure.at, symbol, nth)) {
      status_ = failure.status;
      proceeds_ = false;
    }
  }
  if (const Status bad = sticky_error()) {
    status_ = bad;
    proceeds_ = false;
  }
}

Status Observed::finish() {
  Inside& own = inside[outer_ < kMaxDepth ? outer_ : kMaxDepth - 1];
  const bool has_own = own.call == this;
  if (!settings().log_directory.empty()) {
    log_call({kSymbols[symbol_], words_, passed_, passed_count_, status_, outer_ > 0,
              has_own && own.captured, has_own ? own.ran : nullptr, injection_, begin_ns_, now()});
  }
  if (has_own) delete own.ran;
  depth = outer_;
  return status_;
}

}  // namespace fake
