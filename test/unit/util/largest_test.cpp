#include "util/largest.hpp"

#include <catch2/catch_test_macros.hpp>
#include <functional>

using namespace cudabpf;

TEST_CASE("The largest few are kept, and what does not fit is given back") {
  Largest<int, std::greater<>> largest(2);
  CHECK_FALSE(largest.add(5));
  CHECK(largest.least() == nullptr);
  CHECK_FALSE(largest.add(1));
  REQUIRE(largest.least() != nullptr);
  CHECK(*largest.least() == 1);
  CHECK(largest.add(3) == 1);
  CHECK(largest.add(3) == 3);
  CHECK(largest.take() == std::vector{5, 3});
  CHECK(largest.take().empty());
  Largest<int, std::greater<>> none(0);
  CHECK(none.add(7) == 7);
}
