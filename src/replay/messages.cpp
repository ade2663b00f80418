#include "replay/messages.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace cudabpf::replay {

using bundle::Is;
using bundle::Json;

void describe(auto& fields, Is<Request> auto& request) {
  fields("task", request.task);
  fields("folder", request.folder);
  fields("left_out", request.left_out);
  fields("left_steps", request.left_steps);
  fields("runs", request.runs);
  fields("launch", request.launch);
  fields("alone", request.alone);
  fields("window_ms", request.window_ms);
  fields("candidate", request.candidate);
  fields("candidate_for", request.candidate_for);
  fields("launches", request.launches);
  fields("output", request.output);
  fields("memory", request.memory);
  fields("poisoned", request.poisoned);
  fields("within", request.within);
}

void describe(auto& fields, Is<Gpu> auto& gpu) {
  fields("name", gpu.name);
  fields("driver", gpu.driver);
  fields("major", gpu.major);
  fields("minor", gpu.minor);
  fields("memory", gpu.memory);
}

void describe(auto& fields, Is<Skipped> auto& skipped) {
  fields("what", skipped.what);
  fields("why", skipped.why);
  fields("count", skipped.count);
  fields("call", skipped.call);
}

void describe(auto& fields, Is<Bytes> auto& bytes) {
  fields("compared", bytes.compared);
  fields("equal", bytes.equal);
  fields("different", bytes.different);
  fields("not_deterministic", bytes.not_deterministic);
  fields("not_written", bytes.not_written);
}

void describe(auto& fields, Is<Difference> auto& difference) {
  fields("where", difference.where);
  fields("at", difference.at);
  fields("size", difference.size);
  fields("expected", difference.expected);
  fields("got", difference.got);
}

void describe(auto& fields, Is<Comparison> auto& comparison) {
  fields("memory", comparison.memory);
  fields("copies", comparison.copies);
  fields("variables", comparison.variables);
  fields("unknown", comparison.unknown);
  fields("runs", comparison.runs);
  fields("differences", comparison.differences);
}

void describe(auto& fields, Is<LaunchTime> auto& time) {
  fields("launch", time.launch);
  fields("count", time.count);
  fields("total_ns", time.total_ns);
  fields("least_ns", time.least_ns);
  fields("most_ns", time.most_ns);
}

void describe(auto& fields, Is<Timing> auto& timing) {
  fields("runs_ns", timing.runs_ns);
  fields("launches", timing.launches);
}

void describe(auto& fields, Is<Clocks> auto& clocks) {
  fields("sm_mhz", clocks.sm_mhz);
  fields("throttle", clocks.throttle);
}

void describe(auto& fields, Is<IsolatedTime> auto& time) {
  fields("warm_ns", time.warm_ns);
  fields("cold_ns", time.cold_ns);
  fields("in_turn_ns", time.in_turn_ns);
  fields("launches", time.launches);
  fields("does_less_again", time.does_less_again);
  fields("clocks", time.clocks);
}

void describe(auto& fields, Is<Energy> auto& energy) {
  fields("window_ns", energy.window_ns);
  fields("millijoules", energy.millijoules);
  fields("rounds", energy.rounds);
}

void describe(auto& fields, Is<IsolatedEnergy> auto& energy) {
  fields("warm", energy.warm);
  fields("emptied", energy.emptied);
  fields("emptying", energy.emptying);
}

void describe(auto& fields, Is<Answer> auto& answer) {
  fields("error", answer.error);
  fields("hint", answer.hint);
  fields("step", answer.step);
  fields("gpu", answer.gpu);
  fields("moved", answer.moved);
  fields("notes", answer.notes);
  fields("skipped", answer.skipped);
  fields("comparison", answer.comparison);
  fields("timing", answer.timing);
  fields("isolated", answer.isolated);
  fields("energy", answer.energy);
  fields("isolated_energy", answer.isolated_energy);
  fields("no_energy", answer.no_energy);
  fields("extracted", answer.extracted);
  fields("poisoned", answer.poisoned);
  fields("attempted", answer.attempted);
  fields("strayed", answer.strayed);
}

namespace {

constexpr std::size_t MAX_LINE = std::size_t{64} << 20;

template <typename Message>
std::string written(const Message& message) {
  return bundle::Writing::json_of(message).dump(-1, ' ', false, Json::error_handler_t::replace) +
         '\n';
}

template <typename Message>
Result<Message> message_in(std::string_view line) {
  Message message;
  Json json = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
  std::string fault = bundle::Reading::read(json, "message", message);
  if (!fault.empty()) return Error{"the process that replays says what is no answer: " + fault, {}};
  return message;
}

}  // namespace

std::string line_of(const Request& request) { return written(request); }
std::string line_of(const Answer& answer) { return written(answer); }
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
