#include "replay/messages.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace cudabpf::replay {

using bundle::Is;
using bundle::Json;

namespace {

constexpr std::size_t MAX_LINE = std::size_t{64} << 20;

template <typename Message>
Result<Message> message_in(std::string_view line) {
  Message message;
  Json json = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
  std::string fault = bundle::Reading::read(json, "message", message);
  if (!fault.empty()) return Error{"the process that replays says what is no answer: " + fault, {}};
  return message;
}

}  // namespace

std::string line_of(const Request& request) { return bundle::Writing::text_of(request); }
std::string line_of(const Answer& answer) { return bundle::Writing::text_of(answer); }
Result<Request> request_in(std::string_view line) { return message_in<Request>(line); }
Result<Answer> answer_in(std::string_view line) { return message_in<Answer>(line); }

Result<> Lines::write(std::string_view line) {
  while (!line.empty()) {
    ssize_t sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno_error("send");
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return ok();
}

std::optional<std::string> Lines::take() {
  std::size_t end = read_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  return line;
}

Result<bool> Lines::receive() {
  constexpr std::size_t STEP = std::size_t{64} << 10;
  if (read_.size() > MAX_LINE) return Error{"a message is longer than it may be", {}};
  std::size_t size = read_.size();
  read_.resize(size + STEP);
  ssize_t got = 0;
  do got = ::recv(socket_.get(), read_.data() + size, STEP, 0);
  while (got < 0 && errno == EINTR);
  read_.resize(size + static_cast<std::size_t>(got > 0 ? got : 0));
  if (got < 0 && errno != ECONNRESET) return errno_error("receive");
  return got > 0;
}

Result<std::optional<std::string>> Lines::read() {
  for (;;) {
    if (auto line = take()) return line;
    if (!TRY(receive())) return std::optional<std::string>();
  }
}

}  // namespace cudabpf::replay
