#include "collect/function_numbers.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

TEST_CASE("A function of the table has its place there as its number") {
  FunctionNumbers numbers;
  auto table = cuda_functions();
  for (std::size_t i = 0; i < table.size(); i++) {
    auto numbered = numbers.number(ApiId::cuda, table[i].symbol);
    REQUIRE(numbered);
    CHECK(numbered->id == i);
    CHECK(numbered->function == &table[i]);
    CHECK(numbers.find(numbered->id) == &table[i]);
  }
  CHECK(numbers.find(static_cast<std::uint16_t>(table.size())) == nullptr);
  CHECK(numbers.find(0xffff) == nullptr);
}

TEST_CASE("Symbols that the table lacks are numbered after it, each once") {
  FunctionNumbers numbers;
  auto first = static_cast<std::uint16_t>(cuda_functions().size());
  const Function* function = nullptr;
  {
    std::string name = "cuNewerThanTheTable";  // which does not outlive the call
    auto numbered = numbers.number(ApiId::cuda, name);
    REQUIRE(numbered);
    CHECK(numbered->id == first);
    function = numbered->function;
  }
  auto other = numbers.number(ApiId::cuda, "cuAnother");
  auto again = numbers.number(ApiId::cuda, "cuNewerThanTheTable");
  auto nameless = numbers.number(ApiId::cuda, "");
  REQUIRE(other);
  REQUIRE(again);
  REQUIRE(nameless);
  CHECK(other->id == first + 1);
  CHECK(again->id == first);
  CHECK(again->function == function);
  CHECK(nameless->id == first + 2);
  CHECK(function->symbol == "cuNewerThanTheTable");
  CHECK(numbers.find(first) == function);
  CHECK(numbers.find(other->id) == other->function);
  CHECK(numbers.find(static_cast<std::uint16_t>(first + 3)) == nullptr);
}

TEST_CASE("Numbers end where 16 bits do, and those that are given stay") {
  FunctionNumbers numbers;
  std::size_t first = cuda_functions().size(), end = 1 << 16;
  auto symbol = [](std::size_t i) { return "cuUnknown" + std::to_string(i); };
  const Function* oldest = numbers.number(ApiId::cuda, symbol(first))->function;
  for (std::size_t i = first + 1; i < end; i++)
    if (numbers.number(ApiId::cuda, symbol(i))->id != i) FAIL(i);
  CHECK_FALSE(numbers.number(ApiId::cuda, "cuOneTooMany"));
  CHECK(numbers.number(ApiId::cuda, symbol(end - 1))->id == 0xffff);
  CHECK(numbers.find(0xffff)->symbol == symbol(end - 1));
  CHECK(numbers.find(static_cast<std::uint16_t>(first)) == oldest);
  CHECK(oldest->symbol == symbol(first));
  CHECK(numbers.number(ApiId::cuda, "cuInit"));
}
