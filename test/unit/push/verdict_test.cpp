#include "push/verdict.hpp"

#include <catch2/catch_test_macros.hpp>

#include "util/protobuf.hpp"

using namespace cudabpf;
using namespace cudabpf::push;

namespace {

Verdict of(unsigned status, const std::string& reason, const std::string& retry_after = "") {
  http::Answer answer;
  answer.status = status;
  answer.reason = reason;
  answer.retry_after = retry_after;
  return verdict_in(answer);
}

std::string response(std::uint64_t rejected, const std::string& why) {
  ProtobufMessage partial, message;
  partial.number(1, rejected);
  partial.text(2, why);
  message.message(1, partial);
  return std::string(message.bytes());
}

Verdict accepted_with(const std::string& body, const std::string& type = "application/x-protobuf") {
  http::Answer answer;
  answer.status = 200;
  answer.content_type = type;
  answer.body = body;
  return verdict_in(answer);
}

}  // namespace

TEST_CASE("What a receiver's status means") {
  CHECK(of(200, "OK").outcome == Outcome::accepted);
  CHECK(of(204, "").outcome == Outcome::accepted);
  for (unsigned busy : {429u, 502u, 503u, 504u}) CHECK(of(busy, "").outcome == Outcome::busy);
  for (unsigned no : {301u, 400u, 404u, 413u, 500u}) CHECK(of(no, "").outcome == Outcome::refused);
  CHECK(of(404, "Not Found").why == "404 Not Found");
  CHECK(of(404, "").why == "404");
  CHECK_FALSE(of(404, "").has_arrived());
}

TEST_CASE("A receiver may ask for a pause that is not too long") {
  using std::chrono::seconds;
  CHECK(of(429, "", "7").pause == seconds(7));
  CHECK(of(503, "", "86400").pause == seconds(300));
  CHECK(of(503, "", "99999999999999999999").pause == seconds(300));
  for (const char* no : {"", "-5", "soon", "7s", "Fri, 31 Dec 1999 23:59:59 GMT"})
    CHECK(of(503, "", no).pause == seconds(0));
  CHECK(of(400, "", "7").pause == seconds(0));
}

TEST_CASE("Samples that are rejected are known") {
  Verdict partly = accepted_with(response(3, "too old\nand more"));
  CHECK(partly.outcome == Outcome::partly);
  CHECK(partly.has_arrived());
  CHECK(partly.rejected == 3);
  CHECK(partly.why == "3 samples were rejected: too old");
  for (const std::string& whole :
       {std::string(), response(0, ""), response(0, "a warning"), response(~std::uint64_t{0}, "x"),
        std::string("not protobuf"), std::string("\x0a\xff")}) {
    Verdict verdict = accepted_with(whole);
    CHECK(verdict.outcome == Outcome::accepted);
    CHECK(verdict.rejected == 0);
  }
  CHECK(accepted_with(response(3, ""), "application/json").rejected == 0);
  CHECK(accepted_with(response(3, std::string(5000, 'x'))).why.size() < 300);
}

TEST_CASE("A receiver's own words are cut, and shown only if they are text") {
  http::Answer answer;
  answer.status = 404;
  answer.reason = std::string(5000, 'r');
  answer.body = "no such page\nsecond line";
  CHECK(verdict_in(answer).why.find("no such page") == std::string::npos);
  answer.content_type = "text/plain; charset=utf-8";
  answer.reason = "Not Found";
  CHECK(verdict_in(answer).why == "404 Not Found: no such page");
  answer.body = std::string(5000, 'x');
  CHECK(verdict_in(answer).why.size() < 300);
}
