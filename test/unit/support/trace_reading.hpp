// Reads back what a sink wrote.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The lines of a trace; the test fails if one of them is incomplete.
inline std::vector<nlohmann::json> trace_lines(const std::string& text) {
  REQUIRE((text.empty() || text.back() == '\n'));
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    auto parsed = nlohmann::json::parse(line, nullptr, false);
    if (parsed.is_discarded()) FAIL("no JSON: " << line);
    lines.push_back(std::move(parsed));
  }
  return lines;
}

inline std::vector<std::string> types_of(const std::vector<nlohmann::json>& lines) {
  std::vector<std::string> types;
  for (const auto& line : lines) types.push_back(line["type"]);
  return types;
}

inline std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t size; (size = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    text.append(buffer, size);
  ::pclose(pipe);
  return text;
}

inline bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}
