#include "state/block_table.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>
#include <utility>

using namespace cudabpf;

TEST_CASE("A table of blocks finds what is in it, by key, context and process") {
  BlockTable table;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> expected;  // the size
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; i++) {
    std::uint64_t process = random() % 3, key = random() % 500, context = key % 4;
    BlockTable::Place place = table.find(process, key);
    auto known = expected.find({process, key});
    REQUIRE((place == BlockTable::NONE) == (known == expected.end()));
    if (place == BlockTable::NONE) {
      BlockTable::Held held;
      held.key = key;
      held.size = random();
      table.add(process, context, held);
      expected[{process, key}] = held.size;
    } else {
      REQUIRE(table[place].size == known->second);
      REQUIRE(table.process_of(table[place]) == process);
      table.remove(place);
      expected.erase(known);
    }
    REQUIRE(table.size() == expected.size());
  }
  for (std::uint64_t process = 0; process < 3; process++) {
    std::size_t of_process = 0;
    for (std::uint64_t context = 0; context < 4; context++) {
      for (BlockTable::Place place : table.of_context(process, context)) {
        CHECK(table[place].key % 4 == context);
        CHECK(expected.at({process, table[place].key}) == table[place].size);
        of_process++;
      }
    }
    CHECK(table.of_process(process).size() == of_process);
  }
}
