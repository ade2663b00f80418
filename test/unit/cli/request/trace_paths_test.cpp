#include "cli/request/trace_paths.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;

TEST_CASE("A trace is called as its file is, without what its kind adds") {
  struct Case {
    const char* path;
    const char* name;
  };
  for (const Case& c : {Case{"-", "trace"},
                        {"t.jsonl", "t"},
                        {"t.jsonl.zst", "t"},
                        {"t.zst", "t"},
                        {"traces/t.0001.jsonl.zst", "t"},
                        {"/a/b.c/t.0001.jsonl", "t"},
                        {"t.9999", "t"},
                        {"t", "t"},
                        {"t.json", "t.json"},
                        {"t.jsonl.jsonl", "t.jsonl"},
                        {"t.zst.jsonl", "t.zst"},  // no compression's suffix
                        {"t.001.jsonl", "t.001"},
                        {"t.00x1.jsonl", "t.00x1"},
                        {"t00001.jsonl", "t00001"},
                        {"1.2.0003.jsonl", "1.2"},
                        // Nothing is left out of what is nothing else.
                        {".jsonl", ".jsonl"},
                        {".zst", ".zst"},
                        {".jsonl.zst", ".jsonl"},
                        {".0001.jsonl", ".0001"}}) {
    CAPTURE(c.path);
    CHECK(name_of_trace(c.path) == c.name);
  }
}

TEST_CASE("Nothing is written over a trace, by whatever name") {
  TemporaryFolder folder;
  std::string trace = folder.write("t.0001.jsonl", "{}").string();
  std::string second = folder.write("t.0002.jsonl", "{}").string();
  folder.link("link", second);
  std::filesystem::create_hard_link(trace, folder.path() / "hard");
  const std::vector<std::string> traces{trace, second};
  for (const char* name : {"t.0001.jsonl", "t.0002.jsonl", "link", "hard", "./link"}) {
    std::string path = (folder.path() / name).string();
    auto free = is_no_trace(path, traces);
    REQUIRE_FALSE(free);
    CHECK(free.error().message == path + " is the trace itself");
    CHECK(free.error().exit_code == exit_code::USAGE);
  }
  folder.write("other", "{}");
  CHECK(is_no_trace((folder.path() / "other").string(), traces));
  CHECK(is_no_trace((folder.path() / "new.svg").string(), traces));
  CHECK(is_no_trace("-", {"-"}));  // from one stream to another
  CHECK(is_no_trace(trace, {}));
  CHECK(is_no_trace(trace, {(folder.path() / "missing").string()}));
}
