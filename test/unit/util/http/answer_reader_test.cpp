#include "util/http/answer_reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;
using namespace cudabpf::http;

namespace {

constexpr std::size_t MAX_BODY = 1000;

// Fed in pieces of this size, and closed. The error's message: it was refused.
std::string read(const std::string& text, Answer& answer, std::size_t piece) {
  AnswerReader reader(MAX_BODY);
  for (std::size_t at = 0; at < text.size(); at += piece)
    if (auto taken = reader.take(std::string_view(text).substr(at, piece)); !taken)
      return taken.error().message;
  if (auto closed = reader.close(); !closed) return closed.error().message;
  answer = std::move(reader.answer());
  return {};
}

// However it is cut into pieces, the same comes out.
std::string refusal(const std::string& text, Answer& answer) {
  std::string why = read(text, answer, text.size());
  Answer by_bytes;
  CHECK(read(text, by_bytes, 1) == why);
  CHECK(by_bytes.status == answer.status);
  CHECK(by_bytes.body == answer.body);
  return why;
}

Answer answer_in(const std::string& text) {
  Answer answer;
  std::string why = refusal(text, answer);
  INFO(text);
  REQUIRE(why.empty());
  return answer;
}

std::string refusal(const std::string& text) {
  Answer answer;
  return refusal(text, answer);
}

}  // namespace

TEST_CASE("Answers with a length, in chunks, and up to the end of the connection") {
  Answer sized = answer_in(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length:  5 \r\n\r\nab\ncdX");
  CHECK(sized.status == 200);
  CHECK(sized.reason == "OK");
  CHECK(sized.content_type == "text/plain");
  CHECK(sized.body == "ab\ncd");
  CHECK(answer_in("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n00a;x=y\r\n"
                  "0123456789\r\n0\r\nTrailer: x\r\n\r\n")
            .body == "abc0123456789");
  CHECK(answer_in("HTTP/1.0 200 OK\r\n\r\nup to the end").body == "up to the end");
  CHECK(answer_in("HTTP/1.1 204 No Content\r\n\r\n").is_success());
  Answer busy =
      answer_in("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
  CHECK(busy.status == 429);
  CHECK(busy.reason == "Too Many Requests");
  CHECK(busy.retry_after == "7");
  CHECK_FALSE(busy.is_success());
  CHECK(answer_in("HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\n"
                  "Content-Length: 2\r\n\r\nab")
            .body == "ab");
  CHECK(answer_in("HTTP/1.1 200 OK\nContent-Length: 2\n\nab").body == "ab");
}

TEST_CASE("What is not whole is no answer") {
  for (const char* cut :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n"}) {
    INFO(cut);
    CHECK(refusal(cut) == "the connection was closed before the answer was whole");
  }
}

TEST_CASE("What does not speak HTTP is refused") {
  for (const char* wrong :
       {"\r\n", "SSH-2.0-x\r\n", "HTTP/2 200 OK\r\n", "HTTP/1.1 20x OK\r\n", "HTTP/1.1 099 OK\r\n",
        "HTTP/1.1200 OK\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"}) {
    INFO(wrong);
    CHECK(refusal(wrong) == "what answers does not speak HTTP");
  }
  for (const char* encoded : {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"})
    CHECK(refusal(encoded) == "the answer is encoded as nobody asked for");
}

TEST_CASE("Nothing in an answer is without an end") {
  const std::string OK = "HTTP/1.1 200 OK\r\n", CHUNKED = OK + "Transfer-Encoding: chunked\r\n\r\n";
  std::string headers, informed, chunks, trailers;
  for (int i = 0; i < 5000; i++) {
    headers += "X-Header: " + std::to_string(i) + "\r\n";
    informed += "HTTP/1.1 100 Continue\r\n\r\n";
    chunks += "1;" + std::string(200, 'x') + "\r\na\r\n";
    trailers += "X: y\r\n";
  }
  for (const std::string& endless :
       {OK + headers, informed, OK + "X: " + std::string(100'000, 'x'), std::string(100'000, 'H'),
        CHUNKED + chunks, CHUNKED + "0\r\n" + trailers + trailers + trailers,
        CHUNKED + std::string(10'000, '0'), CHUNKED + "ffffffffffffffff\r\n",
        CHUNKED + "3e9\r\n" + std::string(1001, 'x'), OK + "\r\n" + std::string(1001, 'x'),
        OK + "Content-Length: 1001\r\n\r\n", OK + "Content-Length: 18446744073709551615\r\n\r\n"}) {
    INFO(endless.substr(0, 200));
    CHECK(refusal(endless) == "the answer is too long");
  }
  CHECK(answer_in(OK + "\r\n" + std::string(1000, 'x')).body.size() == MAX_BODY);
  CHECK(answer_in(CHUNKED + "3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n").body.size() ==
        MAX_BODY);
}
