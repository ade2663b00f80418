#include "serve/token.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf::serve;

TEST_CASE("Tokens are of 128 bits, and no two are the same") {
  std::string a = *new_token(), b = *new_token();
  CHECK(a.size() == 32);
  CHECK(a.find_first_not_of("0123456789abcdef") == a.npos);
  CHECK(a != b);
  CHECK(is_token(a, a));
  CHECK_FALSE(is_token(a, b));
  CHECK_FALSE(is_token(a, a.substr(1)));
  CHECK_FALSE(is_token(a, a + "0"));
  CHECK_FALSE(is_token(a, ""));
  CHECK_FALSE(is_token("", ""));  // there is none
}

TEST_CASE("Each port has a cookie of its own") {
  CHECK(cookie_name("127.0.0.1:8077") == "cudabpf_token_8077");
  CHECK(cookie_name("[::1]:9000") == "cudabpf_token_9000");
  CHECK(cookie_name("localhost") == "cudabpf_token_80");
  CHECK(cookie_name("10.0.0.1") == "cudabpf_token_80");
  CHECK(cookie_name("[::1]") == "cudabpf_token_80");
  CHECK(cookie_name("8077") == "cudabpf_token_80");
  CHECK(cookie_name("localhost:") == "cudabpf_token_80");
  CHECK(cookie_name("") == "cudabpf_token_80");
}

TEST_CASE("A token in cookies") {
  CHECK(token_in_cookies("token=abc", "token") == "abc");
  CHECK(token_in_cookies("a=b; token=abc; c=d", "token") == "abc");
  CHECK(token_in_cookies("a=b;token=abc;", "token") == "abc");
  CHECK(token_in_cookies("xtoken=abc", "token").empty());
  CHECK(token_in_cookies("tokens=abc", "token").empty());
  CHECK(token_in_cookies("token", "token").empty());
  CHECK(token_in_cookies("  ;;  ", "token").empty());
  CHECK(cookie_of("abc", "token") == "token=abc; Path=/; HttpOnly; SameSite=Lax");
}
