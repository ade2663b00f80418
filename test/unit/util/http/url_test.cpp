#include "util/http/url.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace cudabpf;
using Catch::Matchers::ContainsSubstring;
using cudabpf::http::Url;

namespace {

Url url(const std::string& text) {
  auto parsed = Url::parse(text, "--push", "/v1/metrics");
  if (!parsed) FAIL(parsed.error().message);
  return *parsed;
}

}  // namespace

TEST_CASE("URLs of plain HTTP") {
  CHECK(url("http://127.0.0.1:4318/v1/metrics").text() == "http://127.0.0.1:4318/v1/metrics");
  CHECK(url("http://vm:8428/opentelemetry/v1/metrics?a=b").target ==
        "/opentelemetry/v1/metrics?a=b");
  CHECK(url("http://vm.example.org").text() == "http://vm.example.org:80/v1/metrics");
  CHECK(url("http://vm/").target == "/");
  CHECK(url("http://[::1]:9090/x").host == "::1");
  CHECK(url("http://[::1]:9090/x").authority() == "[::1]:9090");
  CHECK(url("http://[::1]/x").authority() == "[::1]:80");
}

TEST_CASE("What is no URL of plain HTTP is refused") {
  for (const char* wrong : {"",
                            "http://",
                            "http:///x",
                            "127.0.0.1:4318",
                            "ftp://a",
                            "HTTP://a",
                            "http://a:",
                            "http://a:0",
                            "http://a:65536",
                            "http://a:+1",
                            "http://a:80:80",
                            "http://a b/",
                            "http://a/ b",
                            "http://a/\r\nX: y",
                            "http://a\n",
                            "http://[::1",
                            "http://[127.0.0.1]/",
                            "http://[::1]x/",
                            "http://::1/",
                            "http://a?b",
                            "http://a/b#c",
                            "http://g\xc3\xbcn/",
                            "http://a/\x7f"}) {
    INFO(wrong);
    auto parsed = Url::parse(wrong, "--push", "/");
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().exit_code == exit_code::USAGE);
  }
  CHECK_FALSE(Url::parse("http://a/" + std::string(4000, 'x'), "--push", "/"));
  auto encrypted = Url::parse("https://a/b", "--push", "/");
  REQUIRE_FALSE(encrypted);
  CHECK_THAT(encrypted.error().message, ContainsSubstring("does not speak https"));
  CHECK_THAT(encrypted.error().hint, ContainsSubstring("proxy on this machine"));
  auto named = Url::parse("http://user:secret@a/b", "--push", "/");
  REQUIRE_FALSE(named);
  CHECK_THAT(named.error().message, !ContainsSubstring("secret"));
}
