#include "util/result.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>

using namespace cudabpf;

namespace {

// What can be moved but not copied.
using Box = std::unique_ptr<int>;

const std::string WHY = "there is no box for a number below zero";
const char* g_message = nullptr;  // where the characters of the last error's message are

Result<Box> box_of(int number) {
  if (number >= 0) return std::make_unique<int>(number);
  Error error{WHY, "give another", exit_code::USAGE};
  g_message = error.message.data();
  return error;
}

Result<> check_box(const Box& box) {
  if (*box < 10) return ok();
  return Error{"the box is too small"};
}

Result<Box> larger_box(Box box) {
  TRY(check_box(box));
  return std::make_unique<int>(*box + 1);
}

// Another type than that of what fails in it.
Result<std::string> describe_box(int number) {
  auto box = TRY(larger_box(TRY(larger_box(TRY(box_of(number))))));
  return "a box of " + std::to_string(*box);
}

}  // namespace

TEST_CASE("TRY yields the value of what succeeds") {
  auto described = describe_box(7);
  REQUIRE(described);
  CHECK(*described == "a box of 9");
}

TEST_CASE("TRY returns the error of what fails, and does not copy it") {
  auto described = describe_box(-1);
  REQUIRE_FALSE(described);
  CHECK(described.error().message == WHY);
  CHECK(described.error().message.data() == g_message);
  CHECK(described.error().hint == "give another");
  CHECK(described.error().exit_code == exit_code::USAGE);
  CHECK(describe_box(9).error().message == "the box is too small");
}

TEST_CASE("TRY returns from the lambda that it is in") {
  int tried = 0;
  auto largest = [&](std::initializer_list<int> numbers) -> Result<int> {
    int most = 0;
    for (int number : numbers) {
      tried++;
      most = std::max(most, *TRY(box_of(number)));
    }
    return most;
  };
  CHECK(*largest({3, 5, 4}) == 5);
  CHECK(tried == 3);
  CHECK(largest({3, -1, 4}).error().message == WHY);
  CHECK(tried == 5);
}

TEST_CASE("TRY leaves a result that has a name as it was") {
  const Result<> refused = Error{WHY};
  auto pass_on = [&]() -> Result<> {
    TRY(refused);
    return ok();
  };
  CHECK(pass_on().error().message == WHY);
  CHECK(refused.error().message == WHY);
}
