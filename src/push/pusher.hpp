// Pushes sums to a receiver at an even pace. Sums only grow, so nothing is kept to be sent again:
// what a push that failed would have said, the next one says.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "push/verdict.hpp"
#include "util/http/client.hpp"
#include "util/result.hpp"
#include "util/system/stoppable_thread.hpp"

namespace cudabpf::push {

struct Options {
  http::Url url;
  std::chrono::nanoseconds every{std::chrono::seconds(15)};
};

struct Counts {
  std::array<std::uint64_t, OUTCOMES> pushes{};
  std::uint64_t rejected = 0;  // samples
};

class Pusher {
 public:
  struct Message {
    std::string body;
    std::function<void()> arrived;
  };
  // `next` makes what is to be pushed now, on the pusher's thread.
  Pusher(Options options, const char* content_type, std::function<Message()> next)
      : options_(std::move(options)),
        content_type_(content_type),
        next_(std::move(next)),
        client_(options_.url, MAX_ANSWER) {}

  // Pushes from now on, on a thread without rights.
  Result<> start() {
    return thread_.start("pushing metrics", [this] { run(); });
  }
  // Pushes what there is at the end, if that takes no longer than a second.
  void stop() { thread_.stop(); }
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t MAX_ANSWER = std::size_t{64} << 10;
  static constexpr std::chrono::nanoseconds LONGEST{std::chrono::seconds(10)},
      LONGEST_AT_END{std::chrono::seconds(1)};

  void run();
  bool ends_before(Clock::time_point time) const;
  Verdict push(const http::Patience& patience);
  void note(const Verdict& verdict);
  void report(const Verdict& verdict);

  const Options options_;
  const char* const content_type_;
  const std::function<Message()> next_;
  http::Client client_;
  std::uint64_t failed_in_a_row_ = 0;
  bool reported_rejected_ = false;
  mutable std::mutex mutex_;
  Counts counts_;
  StoppableThread thread_;  // last: it has ended before what it uses is gone
};

}  // namespace cudabpf::push
