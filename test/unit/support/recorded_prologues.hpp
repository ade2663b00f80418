// How the functions of real drivers begin: test/prologues, as scripts/record-prologues writes it.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

struct Prologue {
  std::string name;
  std::uint64_t at = 0;  // its address modulo 16
  std::vector<std::byte> code;
};

struct RecordedDriver {
  std::string version;
  std::vector<Prologue> functions;
};

inline std::vector<std::byte> bytes_of_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline RecordedDriver read_prologues(const std::filesystem::path& path) {
  RecordedDriver driver{path.stem(), {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    Prologue one;
    std::string at, code;
    REQUIRE(fields >> one.name >> at >> code);
    one.at = std::stoul(at, nullptr, 16);
    one.code = bytes_of_hex(code);
    driver.functions.push_back(std::move(one));
  }
  REQUIRE(!driver.functions.empty());
  return driver;
}

// By version.
inline std::vector<RecordedDriver> recorded_drivers() {
  std::vector<RecordedDriver> drivers;
  for (const auto& entry : std::filesystem::directory_iterator(TEST_DIR "/prologues"))
    drivers.push_back(read_prologues(entry.path()));
  std::sort(drivers.begin(), drivers.end(),
            [](const auto& one, const auto& other) { return one.version < other.version; });
  return drivers;
}
