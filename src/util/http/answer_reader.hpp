// Reads an answer of HTTP/1.1 piece by piece. Whoever sends it may be hostile: its headers, its
// body and all that surrounds them have limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "util/result.hpp"

namespace cudabpf::http {

struct Answer {
  unsigned status = 0;
  std::string reason;                     // "Too Many Requests"
  std::string content_type, retry_after;  // empty: not said
  std::string body;

  bool is_success() const { return status / 100 == 2; }
};

class AnswerReader {
 public:
  explicit AnswerReader(std::size_t most_body) : most_body_(most_body) {}

  // The next bytes that came. An error: this is no answer, or too long a one.
  Result<> take(std::string_view bytes);
  // No others will come. An error: the answer is not whole.
  Result<> close();
  bool is_whole() const { return state_ == State::whole; }
  Answer& answer() { return answer_; }

 private:
  enum class State : std::uint8_t {
    head,
    sized,        // a body of `left_` bytes
    chunk_size,   // the line before a chunk
    chunk,        // of which `left_` bytes are missing
    chunk_end,    // the line's end behind it
    trailer,      // what follows the last chunk
    until_close,  // a body that ends with the connection
    whole
  };
  static constexpr std::size_t MAX_HEAD = std::size_t{16} << 10;
  static constexpr std::size_t MAX_LINE = 256;  // before a chunk

  // One step of what is in `pending_`; false: more bytes are needed.
  Result<bool> step();
  Result<bool> read_head();
  Result<bool> read_chunk_size();
  Result<bool> read_bytes();
  Result<> read_header(std::string_view name, std::string_view value);
  Result<> begin_body();
  Result<> read_status(std::string_view line);
  // Takes a line out of `pending_`; nothing: its end has not come.
  Result<std::optional<std::string>> next_line(std::size_t most);
  bool has_room_for(std::uint64_t more) const {
    return more <= most_body_ && answer_.body.size() <= most_body_ - more;
  }

  const std::size_t most_body_;
  State state_ = State::head;
  std::string pending_;  // bytes that came and are not read yet
  std::size_t heads_ = 0, taken_ = 0;
  std::uint64_t left_ = 0;
  std::optional<std::uint64_t> length_;
  bool is_chunked_ = false;
  Answer answer_;
};

}  // namespace cudabpf::http
