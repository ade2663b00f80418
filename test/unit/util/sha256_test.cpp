#include "util/sha256.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

TEST_CASE("SHA-256 of NIST's examples") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 is the same whatever the parts in which it gets the bytes") {
  for (std::size_t size : {55, 56, 63, 64, 65, 119, 128, 200}) {
    std::string bytes;
    for (std::size_t i = 0; i < size; i++) bytes += static_cast<char>(i * 7);
    std::string whole = sha256_hex(bytes);
    for (std::size_t part = 1; part <= size; part += 13) {
      Sha256 hash;
      for (std::size_t at = 0; at < size; at += part)
        hash.add(std::string_view(bytes).substr(at, part));
      CHECK(hash.hex() == whole);
    }
  }
}
