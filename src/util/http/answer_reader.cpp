#include "util/http/answer_reader.hpp"

#include <strings.h>

#include <algorithm>

#include "util/whole_number.hpp"

namespace cudabpf::http {

namespace {

Error not_http() { return Error{"what answers does not speak HTTP"}; }
Error too_long() { return Error{"the answer is too long"}; }

bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view BLANKS = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(BLANKS), text.size()));
  return text.substr(0, text.find_last_not_of(BLANKS) + 1);
}

}  // namespace

Result<> AnswerReader::take(std::string_view bytes) {
  // Chunks may be small, and what surrounds them as long as they are.
  std::size_t most_taken = 2 * most_body_ + 4 * MAX_HEAD;
  if (bytes.size() > most_taken - taken_) return too_long();
  taken_ += bytes.size();
  pending_ += bytes;
  while (TRY(step())) {
  }
  return ok();
}

Result<> AnswerReader::close() {
  if (state_ == State::until_close) state_ = State::whole;
  if (!is_whole()) return Error{"the connection was closed before the answer was whole"};
  return ok();
}

Result<bool> AnswerReader::step() {
  switch (state_) {
    case State::head:
      return read_head();
    case State::chunk_size:
      return read_chunk_size();
    case State::sized:
    case State::chunk:
    case State::until_close:
      return read_bytes();
    case State::chunk_end:
      if (auto line = TRY(next_line(MAX_LINE)); !line)
        return false;
      else if (!line->empty())
        return not_http();
      state_ = State::chunk_size;
      return true;
    case State::trailer:
      if (auto line = TRY(next_line(MAX_HEAD)); !line)
        return false;
      else if (line->empty())
        state_ = State::whole;
      return true;
    case State::whole:
      pending_.clear();
      return false;
  }
  return false;
}

Result<std::optional<std::string>> AnswerReader::next_line(std::size_t most) {
  std::size_t end = pending_.find('\n');
  if (std::min(end, pending_.size()) > most) return too_long();
  if (end == pending_.npos) return std::optional<std::string>();
  std::string line(pending_, 0, end);
  pending_.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return std::optional(std::move(line));
}

// Line by line: `length_` and `is_chunked_` are what its headers have said so far.
Result<bool> AnswerReader::read_head() {
  auto line = TRY(next_line(MAX_HEAD - heads_));
  if (!line) return false;
  heads_ = std::min(heads_ + line->size() + 1, MAX_HEAD);
  if (!answer_.status) {
    TRY(read_status(*line));
    return true;
  }
  if (line->empty()) {
    TRY(begin_body());
    return true;
  }
  std::size_t colon = line->find(':');
  if (colon == line->npos || colon == 0) return not_http();
  TRY(read_header(std::string_view(*line).substr(0, colon),
                  trimmed(std::string_view(*line).substr(colon + 1))));
  return true;
}

// "HTTP/1.1 429 Too Many Requests"
Result<> AnswerReader::read_status(std::string_view line) {
  constexpr std::string_view VERSION = "HTTP/1.";
  constexpr std::size_t AT = VERSION.size() + 2, DIGITS = 3;
  if (!line.starts_with(VERSION) || line.size() < AT + DIGITS || line[AT - 1] != ' ')
    return not_http();
  auto status = whole_number<std::uint64_t>(line.substr(AT, DIGITS), 10);
  if (!status || *status < 100) return not_http();
  answer_.status = static_cast<unsigned>(*status);
  answer_.reason = trimmed(line.substr(AT + DIGITS));
  return ok();
}

Result<> AnswerReader::read_header(std::string_view name, std::string_view value) {
  if (is_same(name, "Content-Type")) answer_.content_type = value;
  if (is_same(name, "Retry-After")) answer_.retry_after = value;
  if (is_same(name, "Transfer-Encoding")) {
    if (!is_same(value, "chunked")) return Error{"the answer is encoded as nobody asked for"};
    is_chunked_ = true;
  }
  if (is_same(name, "Content-Encoding") && !is_same(value, "identity"))
    return Error{"the answer is encoded as nobody asked for"};
  if (is_same(name, "Content-Length")) {
    auto length = whole_number<std::uint64_t>(value, 10);
    if (!length || (length_ && *length_ != *length)) return not_http();
    length_ = length;
  }
  return ok();
}

Result<> AnswerReader::begin_body() {
  constexpr unsigned NO_CONTENT = 204, NOT_MODIFIED = 304;
  if (answer_.status < 200) {  // another answer follows
    answer_ = Answer();
    length_.reset();
    is_chunked_ = false;
    return ok();
  }
  if (answer_.status == NO_CONTENT || answer_.status == NOT_MODIFIED) {
    state_ = State::whole;
  } else if (is_chunked_) {
    state_ = State::chunk_size;
  } else if (length_) {
    if (!has_room_for(*length_)) return too_long();
    left_ = *length_;
    state_ = left_ ? State::sized : State::whole;
  } else {
    state_ = State::until_close;
  }
  return ok();
}

// "1a3f" or "1a3f;name=value"
Result<bool> AnswerReader::read_chunk_size() {
  auto line = TRY(next_line(MAX_LINE));
  if (!line) return false;
  auto size =
      whole_number<std::uint64_t>(trimmed(std::string_view(*line).substr(0, line->find(';'))), 16);
  if (!size) return not_http();
  if (!has_room_for(*size)) return too_long();
  left_ = *size;
  state_ = left_ ? State::chunk : State::trailer;
  return true;
}

Result<bool> AnswerReader::read_bytes() {
  if (pending_.empty()) return false;
  bool has_end = state_ != State::until_close;
  std::size_t size = has_end ? std::min<std::uint64_t>(left_, pending_.size()) : pending_.size();
  if (!has_room_for(size)) return too_long();
  answer_.body.append(pending_, 0, size);
  pending_.erase(0, size);
  if (!has_end) return false;
  left_ -= size;
  if (left_ == 0) state_ = state_ == State::sized ? State::whole : State::chunk_end;
  return true;
}

}  // namespace cudabpf::http
