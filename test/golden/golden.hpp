// Compares with a file in test/golden, byte for byte. UPDATE_GOLDEN=1 rewrites the files instead:
// read the difference before you commit it.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

inline void check_golden(const std::string& name, const std::string& text) {
  std::string path = std::string(TEST_DIR) + "/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    WARN("rewrote " << path);
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::string expected{std::istreambuf_iterator<char>(in), {}};
  CHECK(text == expected);
}
