#include "collect/inside/parting.hpp"

#include <sys/socket.h>

#include <utility>

#include "collect/inside/listener.hpp"

namespace cudabpf {

namespace {

// The kernel keeps some ten messages; a connection that has more is left to the other process.
constexpr std::size_t MAX_MESSAGES = 16;
constexpr std::size_t MAX_LEFT = 64;

// The connection takes no more messages, and none that is left brings descriptors.
bool is_harmless(int socket) {
  for (std::size_t i = 0; i < MAX_MESSAGES; i++) {
    auto first = peek(socket, {});
    if (!first || first->brings_descriptors) return false;
    if (first->is_none) return true;
    take_away(socket);
  }
  return false;
}

}  // namespace

// The end of this process closes the rest, for which nothing makes it wait.
Parting::~Parting() {
  for (Fd& socket : left_) socket.release();
}

void Parting::with(Fd socket) {
  shutdown(socket.get(), SHUT_RDWR);
  if (!is_harmless(socket.get()) && !reader_.discard(socket)) left_.push_back(std::move(socket));
}

void Parting::with_one_in_use(Fd socket) {
  shutdown(socket.get(), SHUT_RDWR);
  if (!reader_.discard(socket)) left_.push_back(std::move(socket));
}

void Parting::go_on() {
  while (!left_.empty() && reader_.discard(left_.front())) left_.pop_front();
}

bool Parting::is_behind() const { return left_.size() >= MAX_LEFT; }

}  // namespace cudabpf
