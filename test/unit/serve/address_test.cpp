#include "serve/address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::serve;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;

namespace {

Address address(const std::string& text) {
  auto parsed = Address::parse(text);
  if (!parsed) FAIL(parsed.error().message);
  return *parsed;
}

}  // namespace

TEST_CASE("Addresses to listen at") {
  CHECK(address("127.0.0.1:8077").text() == "127.0.0.1:8077");
  CHECK(address("[::1]:8077").url() == "http://[::1]:8077/");
  CHECK(address("localhost:80").text() == "127.0.0.1:80");
  CHECK(address("127.0.0.1:65535").url() == "http://127.0.0.1:65535/");
  // By one of the machine's addresses, if it has any.
  CHECK_THAT(address("0.0.0.0:65535").url(), Matches(R"(http://\d+\.\d+\.\d+\.\d+:65535/)"));
  CHECK(address("0.0.0.0:65535").url() != "http://0.0.0.0:65535/");
  CHECK_THAT(address("[::]:1").url(), Matches(R"(http://\[[0-9a-f:]+\]:1/)"));
  CHECK(address("[2001:DB8:0::1]:7").text() == "[2001:db8::1]:7");
  for (const char* own : {"127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "localhost:1"})
    CHECK(address(own).is_loopback());
  for (const char* others : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:127.0.0.1]:1"})
    CHECK_FALSE(address(others).is_loopback());
  for (const char* wrong :
       {"", "8077", ":8077", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "127.0.0.1:+1", "127.0.0.1:80 ", "::1:8077", "[::1]8077", "[::1", "[127.0.0.1]:80",
        "[localhost]:80", "example.org:80", "127.1:80", "1.2.3.4.5:80", "[fe80::1%eth0]:80"}) {
    auto parsed = Address::parse(wrong);
    INFO(wrong);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().exit_code == exit_code::USAGE);
  }
}

TEST_CASE("Only a browser that means this server is answered") {
  Address own = address("127.0.0.1:8077");
  for (const char* host : {"127.0.0.1:8077", "127.0.0.1", "localhost", "LocalHost:8077",
                           "localhost:9000", "[::1]:8077", "127.0.0.2:8077"})
    CHECK(own.is_meant_by(host));
  for (const char* host :
       {"", "example.org", "example.org:8077", "127.0.0.1.example.org", "localhost.example.org",
        "10.0.0.1:8077", "127.0.0.1:x", "127.0.0.1:80@example.org", "[::1", "localhost:8077/",
        "[localhost]", " localhost", "localhost.", "0.0.0.0"})
    CHECK_FALSE(own.is_meant_by(host));

  Address one = address("192.0.2.1:8077");
  CHECK(one.is_meant_by("192.0.2.1:8077"));
  for (const char* host : {"localhost", "127.0.0.1", "192.0.2.2", "[::ffff:192.0.2.1]"})
    CHECK_FALSE(one.is_meant_by(host));

  Address any = address("0.0.0.0:8077");
  for (const char* host : {"localhost", "192.0.2.2:8077", "[2001:db8::1]:8077"})
    CHECK(any.is_meant_by(host));
  CHECK_FALSE(any.is_meant_by("example.org"));
}

TEST_CASE("A server is meant by the names that it was given, too") {
  Address own = address("0.0.0.0:8077");
  REQUIRE(own.add_name("Gpu-17.Example.com"));
  REQUIRE(own.add_name("traces.internal"));
  CHECK(own.url() == "http://gpu-17.example.com:8077/");
  for (const char* host : {"gpu-17.example.com", "GPU-17.example.com:443", "traces.internal:8077"})
    CHECK(own.is_meant_by(host));
  for (const char* host : {"example.com", "gpu-17.example.com.evil.org", "[traces.internal]",
                           "gpu-17.example.com:x", ""})
    CHECK_FALSE(own.is_meant_by(host));
  Address here = address("127.0.0.1:8077");
  REQUIRE(here.add_name("traces.internal"));
  CHECK(here.url() == "http://127.0.0.1:8077/");
  CHECK(here.is_meant_by("traces.internal"));
  for (const char* wrong : {"", "http://a.org", "a.org:80", "a.org/", "a b", "[::1]", "*"}) {
    INFO(wrong);
    auto added = own.add_name(wrong);
    REQUIRE_FALSE(added);
    CHECK(added.error().exit_code == exit_code::USAGE);
  }
}

TEST_CASE("Port 0 is one that is free, and one that is taken is said to be") {
  Address first = address("127.0.0.1:0");
  auto listening = first.listen();
  REQUIRE(listening);
  CHECK(first.text() != "127.0.0.1:0");
  Address second = address(first.text());
  auto refused = second.listen();
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, ContainsSubstring("Address already in use"));
  CHECK_THAT(refused.error().hint, ContainsSubstring("another program"));
}
