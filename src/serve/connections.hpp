// The connections that are open, and how long each may take: a request must be whole soon, and a
// response must be taken at some speed. Otherwise clients that do nothing, or next to it, would
// keep everybody else out.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace cudabpf::serve {

class Connections {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t MAX = 128;
  static constexpr std::chrono::seconds PATIENCE{10};
  static constexpr std::uint64_t SLOWEST = std::uint64_t{32} << 10;  // bytes a second

  struct Connection {
    enum class Phase : std::uint8_t { accepted, request, waiting, response };
    int fd = -1;
    Phase phase = Phase::accepted;
    Clock::time_point since;             // of the phase
    std::atomic<std::uint64_t> sent{0};  // bytes of the response, to the system
  };

  bool is_full() const;
  std::size_t size() const;
  void add(int fd, Clock::time_point now);
  // The one that was added for it, which is served from now on; null: there is none.
  Connection* begin(int fd);
  void enter(Connection& connection, Connection::Phase phase, Clock::time_point now);
  // Before its descriptor is closed, which may then become another's.
  void remove(const Connection& connection);

  // Ends those that took too long; whoever serves them sees that. Returns how many there were.
  std::size_t end_slow(Clock::time_point now);
  void end_all();

 private:
  static bool is_too_slow(const Connection& connection, Clock::time_point now);

  mutable std::mutex mutex_;
  std::map<int, std::unique_ptr<Connection>> by_fd_;
};

}  // namespace cudabpf::serve
