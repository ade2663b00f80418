#include "correlate/learners/blocks.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>
#include <vector>

#include "support/fewer.hpp"

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
    int wrongly_gone = 0, overlaps = 0, wrong_sizes = 0, wrongly_found = 0;
    for (int i = 0; i < 20'000; i++) {
      std::uint64_t address = random() % range * 16, size = 1 + random() % 64;
      bool fills = i % 4000 < 2500;
      if (fills ? random() % 4 != 0 : random() % 4 == 0) {
        blocks.erase_overlapping(address, size, [&](const Block& gone) {
          auto known = truth.find(gone.address);
          if (known == truth.end() || known->second != gone.size) wrongly_gone++;
          if (known != truth.end()) truth.erase(known);
        });
        auto next = truth.lower_bound(address);
        overlaps += next != truth.end() && next->first < address + size;
        overlaps +=
            next != truth.begin() && address - std::prev(next)->first < std::prev(next)->second;
        blocks.insert(block(address, size));
        truth[address] = size;
      } else if (!truth.empty()) {
        auto at = truth.lower_bound(address);
        if (at == truth.end()) at = truth.begin();
        blocks.erase(at->first);
        truth.erase(at);
      }
      wrong_sizes += blocks.size() != truth.size();
      auto after = truth.upper_bound(address + 40);
      const Block* found = blocks.containing(address + 40);
      bool inside = after != truth.begin() &&
                    address + 40 - std::prev(after)->first < std::prev(after)->second;
      wrongly_found += (found != nullptr) != inside;
    }
    CAPTURE(seed);
    CHECK(wrongly_gone == 0);
    CHECK(overlaps == 0);
    CHECK(wrong_sizes == 0);
    CHECK(wrongly_found == 0);
    std::vector<std::map<std::uint64_t, std::uint64_t>::value_type> kept;
    blocks.each([&](const Block& one) { kept.emplace_back(one.address, one.size); });
    CHECK(std::equal(kept.begin(), kept.end(), truth.begin(), truth.end()));
    CHECK(blocks.bytes() <= truth.size() * 80 + 20'000);
  }
}

TEST_CASE("A million blocks in the order of their addresses take 24 bytes each") {
  constexpr std::uint64_t MILLION = 1'000'000 / FEWER, LEFT = MILLION / 125;
  Blocks blocks;
  for (std::uint64_t i = 0; i < MILLION; i++) blocks.insert(block(i * 4096, 4096));
  CHECK(blocks.bytes() < 25 * MILLION);
  for (std::uint64_t i = 0; i < MILLION; i++)
    if (i % 125) blocks.erase(i * 4096);
  CHECK(blocks.size() == LEFT);
  CHECK(blocks.bytes() <= LEFT * 80);
}
