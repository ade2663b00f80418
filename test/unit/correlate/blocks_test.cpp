#include "correlate/blocks.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>

using namespace cudabpf;

namespace {

Block block(std::uint64_t address, std::uint64_t size) {
  Block made;
  made.address = address;
  made.size = size;
  return made;
}

}  // namespace

TEST_CASE("Blocks are found by any address inside") {
  Blocks blocks;
  CHECK_FALSE(blocks.containing(0));
  blocks.insert(block(0x1000, 0x10));
  CHECK(blocks.containing(0x1000)->size == 0x10);
  CHECK(blocks.containing(0x100f)->size == 0x10);
  CHECK_FALSE(blocks.containing(0x1010));
  CHECK_FALSE(blocks.containing(0xfff));
  CHECK(blocks.at(0x1000));
  CHECK_FALSE(blocks.at(0x1001));
  blocks.insert(block(0x2000, ~std::uint64_t{0}));
  CHECK(blocks.containing(~std::uint64_t{0})->address == 0x2000);
}

TEST_CASE("Blocks do what a map does, and stay small") {
  for (std::uint32_t seed = 1; seed <= 8; seed++) {
    std::mt19937_64 random(seed);
    Blocks blocks;
    std::map<std::uint64_t, std::uint64_t> truth;
    std::uint64_t range = std::uint64_t{1} << (8 + 2 * seed);
    for (int i = 0; i < 20'000; i++) {
      std::uint64_t address = random() % range * 16, size = 1 + random() % 64;
      bool fills = i % 4000 < 2500;
      if (fills ? random() % 4 != 0 : random() % 4 == 0) {
        std::uint64_t removed = 0;
        blocks.erase_overlapping(address, size, [&](const Block& gone) {
          removed++;
          CHECK(truth.at(gone.address) == gone.size);
          truth.erase(gone.address);
        });
        for (const auto& [at, length] : truth)
          if (range < 4096 && at < address + size && address < at + length) FAIL();
        blocks.insert(block(address, size));
        truth[address] = size;
      } else if (!truth.empty()) {
        auto at = truth.lower_bound(address);
        if (at == truth.end()) at = truth.begin();
        blocks.erase(at->first);
        truth.erase(at);
      }
      CHECK(blocks.size() == truth.size());
      auto after = truth.upper_bound(address + 40);
      const Block* found = blocks.containing(address + 40);
      bool inside = after != truth.begin() &&
                    address + 40 - std::prev(after)->first < std::prev(after)->second;
      CHECK((found != nullptr) == inside);
    }
    auto expected = truth.begin();
    blocks.each([&](const Block& kept) {
      REQUIRE(expected != truth.end());
      CHECK(kept.address == expected->first);
      CHECK(kept.size == expected->second);
      ++expected;
    });
    CHECK(expected == truth.end());
    CHECK(blocks.bytes() <= truth.size() * 80 + 20'000);
  }
}

TEST_CASE("A million blocks in the order of their addresses take 24 bytes each") {
  Blocks blocks;
  for (std::uint64_t i = 0; i < 1'000'000; i++) blocks.insert(block(i * 4096, 4096));
  CHECK(blocks.bytes() < 25'000'000);
  for (std::uint64_t i = 0; i < 1'000'000; i++)
    if (i % 128) blocks.erase(i * 4096);
  CHECK(blocks.size() == 7813);
  CHECK(blocks.bytes() <= 7813 * 80);
}
