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

TEST_CASE("A token in cookies") {
  CHECK(token_in_cookies("cudabpf_token=abc") == "abc");
  CHECK(token_in_cookies("a=b; cudabpf_token=abc; c=d") == "abc");
  CHECK(token_in_cookies("a=b;cudabpf_token=abc;") == "abc");
  CHECK(token_in_cookies("xcudabpf_token=abc").empty());
  CHECK(token_in_cookies("cudabpf_tokens=abc").empty());
  CHECK(token_in_cookies("cudabpf_token").empty());
  CHECK(token_in_cookies("  ;;  ").empty());
  CHECK(cookie_of("abc") == "cudabpf_token=abc; Path=/; HttpOnly; SameSite=Lax");
}
