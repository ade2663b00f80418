// Which functions of real drivers can be recorded from inside, and why the others cannot.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>
#include <vector>

#include "golden.hpp"
#include "support/recorded_prologues.hpp"
#include "util/detour/detour.hpp"

using namespace cudabpf;

namespace {

using Names = std::vector<std::string>;

// The largest group has its number alone: the names of the others say which it holds.
std::string described(const RecordedDriver& driver) {
  std::map<detour::Refusal, Names> by_answer;
  for (const Prologue& one : driver.functions)
    by_answer[detour::find_place(one.code, one.at).refusal].push_back(one.name);
  auto largest = std::max_element(
      by_answer.begin(), by_answer.end(),
      [](const auto& one, const auto& other) { return one.second.size() < other.second.size(); });
  std::string text = fmt::format("{}: {} functions\n", driver.version, driver.functions.size());
  for (const auto& [refusal, names] : by_answer) {
    bool patched = refusal == detour::Refusal::none;
    text +=
        fmt::format("  {}: {}\n", patched ? "can be patched" : to_string(refusal), names.size());
    if (refusal == largest->first) continue;
    for (const std::string& name : names) text += fmt::format("    {}\n", name);
  }
  return text;
}

}  // namespace

TEST_CASE("The same functions of each real driver can be recorded from inside") {
  std::string text;
  for (const RecordedDriver& driver : recorded_drivers()) text += described(driver);
  check_golden("prologues.txt", text);
}
