#include "serve/connections.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

namespace cudabpf::serve {

namespace {

// The system takes megabytes for a client that takes nothing.
std::uint64_t taken_by_client(const Connections::Connection& connection) {
  std::uint64_t sent = connection.sent;
  int queued = 0;
  if (!sent || ::ioctl(connection.fd, SIOCOUTQ, &queued) != 0) return sent;
  return sent - std::min(sent, static_cast<std::uint64_t>(queued));
}

}  // namespace

bool Connections::is_full() const { return size() >= MAX; }

std::size_t Connections::size() const {
  std::lock_guard lock(mutex_);
  return by_fd_.size();
}

void Connections::add(int fd, Clock::time_point now) {
  auto added = std::make_unique<Connection>();
  added->fd = fd;
  added->since = now;
  std::lock_guard lock(mutex_);
  by_fd_[fd] = std::move(added);
}

Connections::Connection* Connections::begin(int fd) {
  std::lock_guard lock(mutex_);
  auto known = by_fd_.find(fd);
  if (known == by_fd_.end()) return nullptr;
  known->second->phase = Connection::Phase::request;
  return known->second.get();
}

void Connections::enter(Connection& connection, Connection::Phase phase, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  connection.phase = phase;
  connection.since = now;
}

void Connections::remove(const Connection& connection) {
  std::lock_guard lock(mutex_);
  by_fd_.erase(connection.fd);
}

bool Connections::is_too_slow(const Connection& connection, Clock::time_point now) {
  // Whoever makes the answer has bounds of his own.
  if (connection.phase == Connection::Phase::waiting) return false;
  auto allowed = PATIENCE + std::chrono::seconds(taken_by_client(connection) / SLOWEST);
  return now - connection.since > allowed;
}

std::size_t Connections::end_slow(Clock::time_point now) {
  std::lock_guard lock(mutex_);
  std::size_t ended = 0;
  for (auto at = by_fd_.begin(); at != by_fd_.end();) {
    auto& [fd, connection] = *at;
    bool is_slow = is_too_slow(*connection, now);
    ended += is_slow;
    // It was closed without ever being served: its descriptor is somebody else's.
    if (is_slow && connection->phase == Connection::Phase::accepted) {
      at = by_fd_.erase(at);
      continue;
    }
    if (is_slow) ::shutdown(fd, SHUT_RDWR);
    ++at;
  }
  return ended;
}

void Connections::end_all() {
  std::lock_guard lock(mutex_);
  for (const auto& [fd, connection] : by_fd_)
    if (connection->phase != Connection::Phase::accepted) ::shutdown(fd, SHUT_RDWR);
}

}  // namespace cudabpf::serve
