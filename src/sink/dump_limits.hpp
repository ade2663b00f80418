// Which triggered dumps are written: one at a time, apart from each other, and not without end.
// What comes too soon after a dump is not worth another: something that fails does so again.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace cudabpf {

class DumpLimits {
 public:
  struct Options {
    std::uint64_t after_trigger_ns = 0;  // when one is written, so that it has what follows
    std::uint64_t between_ns = 0;        // two of them, at least
    unsigned most = 0;
  };
  enum class Verdict : std::uint8_t { on_its_way, too_soon, too_many };
  struct Answer {
    Verdict verdict = Verdict::on_its_way;
    std::uint64_t wait_ns = 0;  // if it is too soon
  };

  explicit DumpLimits(Options options) : options_(options) {}

  // Something has happened, at this time on CLOCK_MONOTONIC. May be called on any thread.
  Answer trigger(std::string why, std::uint64_t now);
  // Why a dump is to be written now, which then counts as written; empty: none is.
  std::string due(std::uint64_t now, bool at_the_end);

 private:
  const Options options_;
  std::mutex mutex_;
  std::string why_;  // a dump was triggered that is not written yet; empty: none was
  std::uint64_t triggered_ns_ = 0, dumped_ns_ = 0;  // that, and the last one; 0: never
  unsigned dumps_ = 0;                              // that were written
};

}  // namespace cudabpf
