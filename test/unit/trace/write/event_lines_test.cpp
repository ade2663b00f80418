#include "trace/write/event_lines.hpp"

#include "trace/header.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>

using namespace cudabpf;

TEST_CASE("Text of traced programs is cut where it is longer than readers take, and that is said") {
  Process process;
  process.cmdline = std::string(6 << 20, '\x01');  // a byte that takes six in JSON
  process.exe = std::string(4095, 'x') + "é";      // cut only between characters
  process.cgroup = std::string(4096, 'y');
  std::string line = process_line(process);
  CHECK(line.size() < 40'000);
  auto json = nlohmann::json::parse(line);
  CHECK(json["cmdline"] == std::string(4096, '\x01') + "…");
  CHECK(json["exe"] == std::string(4095, 'x') + "…");
  CHECK(json["cgroup"] == std::string(4096, 'y'));
  CHECK(json["text_cut"] == true);
  CHECK_FALSE(nlohmann::json::parse(process_line({})).contains("text_cut"));
}

TEST_CASE("A command of a million arguments makes a header that can be read") {
  Session session;
  session.command.assign(1'000'000, "argument");
  auto json = nlohmann::json::parse(header_line(session, {}));
  CHECK(json["command"].size() == (64 << 10) / 9 + 1);
  CHECK(json["command"].back() == "…");
  CHECK(json["text_cut"] == true);
  CHECK_FALSE(json.contains("only"));
  CHECK(json["left_out"].empty());
}
