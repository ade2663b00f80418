#include "serve/token.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>

#include "support/temporary_folder.hpp"

using namespace cudabpf::serve;
namespace fs = std::filesystem;

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

TEST_CASE("A bearer has one header, with the token") {
  const std::string token = "0123456789abcdef";
  CHECK(is_bearer_of(token, {"Bearer " + token}));
  CHECK(is_bearer_of(token, {"bearer   " + token}));
  CHECK_FALSE(is_bearer_of(token, {}));
  CHECK_FALSE(is_bearer_of(token, {"Bearer " + token, "Bearer " + token}));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer 0123456789abcde", "0123456789abcdef",
                            "Basic 0123456789abcdef", "Bearer 0123456789abcdef0",
                            "Bearer 0123456789abcdef ", "Bearer0123456789abcdef"})
    CHECK_FALSE(is_bearer_of(token, {wrong}));
  CHECK_FALSE(is_bearer_of("", {"Bearer "}));
}

TEST_CASE("A token in a file is for its owner, and long enough") {
  TemporaryFolder folder;
  const std::string token = "0123456789abcdef";
  auto taken = [&](const std::string& text, fs::perms mode = fs::perms::owner_read) {
    auto path = folder.path() / "token";
    fs::remove(path);
    folder.write("token", text);
    fs::permissions(path, mode);
    return token_in_file(path);
  };
  CHECK(*taken(token) == token);
  CHECK(*taken(token + "\n", fs::perms::owner_read | fs::perms::group_read) == token);
  CHECK(*taken(std::string(1024, 'x')) == std::string(1024, 'x'));
  CHECK_FALSE(taken(std::string(1025, 'x')));
  CHECK_FALSE(taken(token.substr(1)));
  CHECK_FALSE(taken(""));
  CHECK_FALSE(taken(token + "\n\n"));
  CHECK_FALSE(taken(token + " x"));
  CHECK_FALSE(taken(token + "\xff"));
  for (fs::perms other : {fs::perms::others_read, fs::perms::others_write}) {
    auto refused = taken(token, fs::perms::owner_read | other);
    REQUIRE(!refused);
    CHECK(refused.error().message.find("every user may use that file") != std::string::npos);
    CHECK(refused.error().message.find(token) == std::string::npos);
  }
  CHECK_FALSE(token_in_file(folder.path()));
  CHECK_FALSE(token_in_file("/nonexistent/token"));
  CHECK_FALSE(token_in_file("/dev/null"));
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
