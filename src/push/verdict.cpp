#include "push/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "util/protobuf.hpp"

namespace cudabpf::push {

namespace {

// A receiver may not silence cudabpf for longer.
constexpr std::chrono::seconds LONGEST_PAUSE{300};
constexpr std::size_t LONGEST_REASON = 200;

std::string beginning_of(std::string_view text) {
  text = text.substr(0, std::min(text.find_first_of("\r\n"), LONGEST_REASON));
  return text.empty() ? std::string() : fmt::format(": {}", text);
}

Outcome outcome_of(unsigned status) {
  constexpr unsigned BUSY[] = {429, 502, 503, 504};
  return std::find(std::begin(BUSY), std::end(BUSY), status) != std::end(BUSY) ? Outcome::busy
                                                                               : Outcome::refused;
}

// A number of seconds; dates are not read, since clocks differ.
std::chrono::seconds pause_in(std::string_view text) {
  long long seconds = 0;
  const char* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, seconds);
  if (read.ec == std::errc::result_out_of_range) return LONGEST_PAUSE;
  if (read.ec != std::errc() || read.ptr != end) return {};
  return std::clamp(std::chrono::seconds(seconds), std::chrono::seconds(0), LONGEST_PAUSE);
}

// An ExportMetricsServiceResponse, whose field 1 has how many samples were rejected, and why.
Verdict partly_accepted(std::string_view body) {
  Verdict verdict{Outcome::accepted};
  ProtobufReader response(body);
  while (auto partial = response.next()) {
    if (partial->number != 1) continue;
    ProtobufReader reader(partial->text);
    while (auto field = reader.next()) {
      if (field->number == 1) verdict.rejected = field->value;
      if (field->number == 2) verdict.why = std::string(field->text);
    }
  }
  bool is_negative = verdict.rejected >> 63;
  if (is_negative || !verdict.rejected) return {Outcome::accepted};
  verdict.outcome = Outcome::partly;
  verdict.why =
      fmt::format("{} samples were rejected{}", verdict.rejected, beginning_of(verdict.why));
  return verdict;
}

}  // namespace

Verdict verdict_in(const http::Answer& answer) {
  if (answer.is_success()) {
    bool is_protobuf = answer.content_type.starts_with("application/x-protobuf");
    return is_protobuf ? partly_accepted(answer.body) : Verdict{Outcome::accepted};
  }
  bool is_text = answer.content_type.starts_with("text/plain");
  Verdict verdict{outcome_of(answer.status)};
  verdict.why = fmt::format("{}{}{}", answer.status, answer.reason.empty() ? "" : " ",
                            answer.reason.substr(0, LONGEST_REASON));
  if (is_text) verdict.why += beginning_of(answer.body);
  if (verdict.outcome == Outcome::busy) verdict.pause = pause_in(answer.retry_after);
  return verdict;
}

}  // namespace cudabpf::push
