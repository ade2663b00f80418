// Runs a generator of scripts/ on tables that a test has written.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"

struct Said {
  int status;
  std::string message;
};

// What it says with each of these lists of arguments.
inline std::vector<Said> run_generator(const std::string& name,
                                       const std::vector<std::vector<std::string>>& runs) {
  TemporaryFolder folder;
  std::string list = folder.write("runs", nlohmann::json(runs).dump());
  auto answer = nlohmann::json::parse(
      output_of("python3 -B '" TEST_DIR "/unit/tables/run_each.py' '" TEST_DIR "/../scripts/" +
                name + "' " + list));
  REQUIRE(answer.size() == runs.size());
  std::vector<Said> said;
  for (const auto& run : answer) said.push_back({run[0], run[1]});
  return said;
}
