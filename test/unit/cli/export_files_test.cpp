#include "cli/export_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "util/exit_codes.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;
using cudabpf::cli::ExportFiles;
namespace fs = std::filesystem;

namespace {

// The current folder, as long as it lives, with a trace in it.
struct Here : TemporaryFolder {
  Here() { fs::current_path(path()); }
  ~Here() { fs::current_path(before_); }

  std::string trace = write("t.jsonl", "trace\n").string();

 private:
  fs::path before_ = fs::current_path();
};

std::vector<std::string> paths_of(const ExportFiles& files) {
  std::vector<std::string> paths;
  for (const auto& file : files.files()) paths.push_back(file.path);
  return paths;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("An export goes into the current folder, named after the trace") {
  Here here;
  ExportFiles files("", {here.trace});
  auto stream = files.add("csv");
  REQUIRE(stream);
  (*stream)->text("a,b\n");
  REQUIRE(files.finish());
  CHECK(paths_of(files) == Paths{"t.csv"});
  CHECK(file_text("t.csv") == "a,b\n");
}

TEST_CASE("An export goes into the file, or the folder, that was named") {
  Here here;
  ExportFiles one("x.json", {here.trace});
  REQUIRE(one.add("chrome.json"));
  CHECK(paths_of(one) == Paths{"x.json"});
  fs::create_directory("folder");
  ExportFiles inside("folder", {here.trace});
  REQUIRE(inside.add("chrome.json"));
  CHECK(paths_of(inside) == Paths{"folder/t.chrome.json"});
}

TEST_CASE("What was there is replaced, but never the trace") {
  Here here;
  here.write("x.csv", "before\n");
  ExportFiles files("x.csv", {here.trace});
  auto stream = files.add("csv");
  REQUIRE(stream);
  (*stream)->text("after\n");
  REQUIRE(files.finish());
  CHECK(file_text("x.csv") == "after\n");

  ExportFiles wrong("t.jsonl", {"other.jsonl", here.trace});
  auto refused = wrong.add("csv");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().exit_code == exit_code::USAGE);
  CHECK(file_text(here.trace) == "trace\n");
}

TEST_CASE("A format of several files is a folder of them") {
  Here here;
  ExportFiles unnamed("", {here.trace});
  auto streams = unnamed.add_folder("alnair", {"a.log", "b.log"});
  REQUIRE(streams);
  REQUIRE(streams->size() == 2);
  (*streams)[1]->text("b");
  REQUIRE(unnamed.finish());
  CHECK(paths_of(unnamed) == Paths{"t.alnair/a.log", "t.alnair/b.log"});
  CHECK(file_text("t.alnair/a.log").empty());
  CHECK(file_text("t.alnair/b.log") == "b");

  ExportFiles named("logs", {here.trace});
  REQUIRE(named.add_folder("alnair", {"a.log"}));
  CHECK(paths_of(named) == Paths{"logs/a.log"});
}

TEST_CASE("All formats together go into the folder that was named, which may be new") {
  Here here;
  ExportFiles files("all", {here.trace});
  REQUIRE(files.make_folder());
  REQUIRE(fs::is_directory("all"));
  REQUIRE(files.add("csv"));
  REQUIRE(files.add_folder("alnair", {"a.log"}));
  CHECK(paths_of(files) == Paths{"all/t.csv", "all/t.alnair/a.log"});
}

TEST_CASE("An export that is given up takes away what it made, and nothing else") {
  Here here;
  {
    ExportFiles files("", {here.trace});
    REQUIRE(files.add("csv"));
    REQUIRE(files.add_folder("alnair", {"a.log"}));
    files.discard();
  }
  here.write("mine/note", "");
  {
    ExportFiles files("mine", {here.trace});
    REQUIRE(files.add_folder("alnair", {"a.log"}));
    files.discard();
  }
  fs::create_directory("empty");
  {
    ExportFiles files("empty", {here.trace});
    REQUIRE(files.add_folder("alnair", {"a.log"}));
    files.discard();
  }
  Paths left;
  for (const auto& entry : fs::recursive_directory_iterator("."))
    left.push_back(entry.path().string());
  std::sort(left.begin(), left.end());
  CHECK(left == Paths{"./empty", "./mine", "./mine/note", "./t.jsonl"});
}

TEST_CASE("An export that could not be written in full is an error that names the file") {
  Here here;
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  std::string path = fmt::format("/dev/fd/{}", full.get());
  ExportFiles files(path, {here.trace});
  auto stream = files.add("csv");
  REQUIRE(stream);
  (*stream)->text("a,b\n");
  CHECK_FALSE(files.failure());  // it is still being gathered
  auto done = files.finish();
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "cannot write " + path + ": No space left on device");
  CHECK(done.error().hint == "what was written is incomplete");
  CHECK(done.error().exit_code == exit_code::OUTPUT_FAILED);
  files.discard();
  CHECK(fs::exists(path));  // what another process has opened stays
}

TEST_CASE("Standard output is named -") {
  CHECK(ExportFiles("-", {"t.jsonl"}).to_stdout());
  CHECK_FALSE(ExportFiles("", {"t.jsonl"}).to_stdout());
  CHECK_FALSE(ExportFiles("./-", {"t.jsonl"}).to_stdout());
}
