#include "util/text/nearest.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::nearest;

TEST_CASE("What a mistyped name was meant to be") {
  const std::vector<std::string> known = {"calls", "errors", "export", "kernels", "summary"};
  CHECK(nearest("sumary", known) == "summary");    // a letter is missing,
  CHECK(nearest("kernells", known) == "kernels");  // one too many,
  CHECK(nearest("exporr", known) == "export");     // a wrong one,
  CHECK(nearest("clals", known) == "calls");       // two are swapped
  CHECK(nearest("error", known) == "errors");
  CHECK(nearest("sum", known) == "summary");
  CHECK(nearest("e", known).empty());
  CHECK(nearest("exp", {"export", "expand"}).empty());  // it could be either
  CHECK(nearest("python", known).empty());
  CHECK(nearest(std::string(100'000, 'x'), known).empty());
}
