#include "util/hash.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <string>
#include <vector>

#include "analyze/derived/streams.hpp"

using namespace cudabpf;

namespace {

// The bits of a hash of which every one would be in one place of a table without a seed.
constexpr std::uint64_t FACTOR = 0x9e3779b97f4a7c15;
constexpr std::size_t MANY = 20'000, PLACES = 1 << 14;

std::uint64_t mixed_once(std::uint64_t hash, std::uint64_t more) {
  hash = (hash ^ more) * FACTOR;
  return hash ^ hash >> 32;
}
// What it makes this of, together with 0.
std::uint64_t unmixed(std::uint64_t hash) {
  std::uint64_t inverse = FACTOR;
  for (int i = 0; i < 6; i++) inverse *= 2 - FACTOR * inverse;
  return (hash ^ hash >> 32) * inverse;
}

// How many of these keys are in the place that has the most.
template <typename HashOf>
std::size_t most_in_a_place(const std::vector<std::uint64_t>& keys, HashOf hash_of_key) {
  std::vector<std::size_t> places(PLACES);
  for (std::uint64_t key : keys) places[hash_of_key(key) % PLACES]++;
  return *std::max_element(places.begin(), places.end());
}

}  // namespace

TEST_CASE("Keys that fall together under a hash without a seed do not under this one") {
  const std::uint64_t process = 4711;
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t i = 1; i <= MANY; i++)
    addresses.push_back(unmixed(unmixed(i << 22)) ^ process);
  REQUIRE(most_in_a_place(addresses, [&](std::uint64_t key) {
            return mixed_once(mixed_once(key, process), 0);
          }) == MANY);
  // With 20,000 at random in 16,384 places, 16 in one comes once in a hundred billion times.
  CHECK(most_in_a_place(addresses, [&](std::uint64_t key) { return hash_of(process, key); }) < 16);
}

TEST_CASE("A stream's handle that is the number of its process makes no list of a table") {
  std::vector<std::uint64_t> numbers(MANY);
  for (std::size_t i = 0; i < MANY; i++) numbers[i] = i;
  CHECK(most_in_a_place(numbers, [](std::uint64_t number) {
          return analyze::StreamHash()({.process = number, .handle = number});
        }) < 16);
}

TEST_CASE("A map's places are not those that numbers would have by themselves") {
  HashMap<std::uint64_t, int> map;
  map.reserve(MANY);
  std::size_t places = map.bucket_count();
  for (std::uint64_t i = 0; i < MANY; i++) map[i * places] = 1;
  REQUIRE(map.bucket_count() == places);
  std::size_t most = 0;
  for (std::size_t i = 0; i < places; i++) most = std::max(most, map.bucket_size(i));
  CHECK(most < 16);
}

TEST_CASE("A hash depends on each of its words, on their order, and on the seed") {
  std::set<std::uint64_t> hashes = {hash_of(1, 2),    hash_of(2, 1),    hash_of(1, 2, 0),
                                    hash_of(0, 1, 2), hash_of(1),       hash_of(2),
                                    hash_of(0),       hash_of(1 << 16), hash_of(-1)};
  for (int bit = 0; bit < 64; bit++) hashes.insert(hash_of(std::uint64_t{5} << 33, 1ull << bit));
  CHECK(hashes.size() == 9 + 64);
  CHECK(hash_of(1, 2) == hash_of(1, 2));
  Hasher one({1, 2}), same({1, 2}), other({1, 3});
  for (Hasher* hasher : {&one, &same, &other}) hasher->add(7);
  std::uint64_t result = one.result();
  CHECK(result == same.result());
  CHECK(result != other.result());
  CHECK((hash_seed()[0] | hash_seed()[1]) != 0);
}

TEST_CASE("Texts are hashed with all of their bytes, and with their length") {
  std::set<std::uint64_t> hashes;
  std::string text;
  for (int i = 0; i < 40; i++) {
    hashes.insert(hash_of(text));
    text += '\0';
  }
  CHECK(hashes.size() == 40);
  CHECK(hash_of("cuMemAlloc") == hash_of(std::string("cuMemAlloc")));
  CHECK(hash_of("cuMemAlloc") != hash_of("cuMemAlloD"));
  CHECK(SeededHash()(std::string("a")) == SeededHash()(std::string_view("a")));
}
