// Makes reports, a few at a time. Who asks for one that is being made waits for the same; one that
// nobody waits for any more is given up.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "serve/reading.hpp"

namespace cudabpf::serve {

// Distinguishes a report from those of the same trace as it was before: an entity tag of HTTP. One
// that says that recording goes on is another one: it is good as long as that may be so.
std::string tag_of(const FoundTrace& trace, bool says_running);

class Reports {
 public:
  static constexpr std::size_t AT_ONCE = 2, MAX_WAITING_CLIENTS = 64;
  // Each may take 30 MB, from when somebody asks for it until the slowest client has it.
  static constexpr std::size_t MAX_PAGES = 20;

  enum class Outcome : std::uint8_t { made, busy, given_up, failed };
  struct Answer {
    Outcome outcome = Outcome::given_up;
    std::shared_ptr<const std::string> page;
    std::string why;            // it failed
    bool says_running = false;  // the page: that recording goes on
  };

  explicit Reports(const Folder& folder);
  ~Reports();
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

  // Waits until it is made, but no longer than it is wanted.
  Answer get(const FoundTrace& trace, const IsWanted& is_wanted);
  // Whoever waits gets nothing more, now or later.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds ASK_AGAIN{200};
  static constexpr std::chrono::minutes LONGEST{
      10};                                // but for traces that were made to take longer
  static constexpr std::size_t KEPT = 2;  // that were made last

  struct Job {
    FoundTrace trace;
    std::string tag;
    std::size_t waiting = 0;
    bool done = false;
    Answer answer;
  };
  using JobPointer = std::shared_ptr<Job>;

  JobPointer job_of(const FoundTrace& trace);  // null: there are too many
  void work();                                 // a thread
  Answer make(const Job& job);
  void keep(const JobPointer& job);

  const Folder& folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<JobPointer> queue_, under_way_, kept_;
  std::deque<std::weak_ptr<const std::string>> made_;  // some are gone already
  std::size_t clients_ = 0;
  bool ending_ = false;
  std::array<std::thread, AT_ONCE> workers_;
};

}  // namespace cudabpf::serve
