#include "trace/files/trace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "trace/files/jsonl.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

TEST_CASE("Where a trace may be written") {
  TemporaryFolder folder;
  auto path = (folder.path() / "t.jsonl").string();
  JsonlOptions options;
  options.output.path = path;
  auto refused = [&] {
    auto sink = JsonlSink::open(options);
    REQUIRE(!sink);
    CHECK(!sink.error().hint.empty());
    return sink.error().message;
  };
  SECTION("an old file is replaced, not written into: a link to it keeps what it had") {
    folder.write("t.jsonl", "old\n");
    fs::create_hard_link(path, folder.path() / "other");
    REQUIRE(JsonlSink::open(options));
    CHECK(file_text(folder.path() / "other") == "old\n");
    CHECK(file_text(path).empty());
  }
  SECTION("the umask says which users may read it: a trace names command lines") {
    mode_t before = ::umask(0027);
    REQUIRE(JsonlSink::open(options));
    ::umask(before);
    CHECK(fs::status(path).permissions() == static_cast<fs::perms>(0640));
  }
  SECTION("a symbolic link is not followed") {
    folder.write("target", "precious\n");
    folder.link("t.jsonl", "target");
    CHECK(refused() == "cannot write to " + path + ": it exists and is not a regular file");
    CHECK(file_text(folder.path() / "target") == "precious\n");
    folder.link("dangling", "nothing");
    options.output.path = folder.path() / "dangling";
    CHECK(refused().ends_with("is not a regular file"));
    CHECK(!fs::exists(folder.path() / "nothing"));
  }
  SECTION("a folder or a device is left alone") {
    options.output.path = folder.path();
    CHECK(refused().ends_with("is not a regular file"));
    options.output.path = "/dev/zero";
    CHECK(refused().ends_with("is not a regular file"));
    folder.link("nowhere", "/dev/null");
    options.output.path = folder.path() / "nowhere";
    CHECK(refused().ends_with("is not a regular file"));
  }
  SECTION("/dev/null takes a trace, and has no parts") {
    options.output.path = "/dev/null";
    auto sink = JsonlSink::open(options);
    REQUIRE(sink);
    CHECK((*sink)->space() == std::nullopt);
    options.rotate_size = 1 << 20;
    CHECK(refused() == "/dev/null cannot be rotated");
    CHECK(fs::is_character_file("/dev/null"));
  }
  SECTION("a missing folder is made only where cudabpf chose it") {
    options.output.path = folder.path() / "traces" / "t.jsonl";
    CHECK(refused() == "cannot create " + options.output.path + ": No such file or directory");
    options.output.own_choice = true;
    REQUIRE(JsonlSink::open(options));
    CHECK(fs::exists(options.output.path));
  }
  SECTION("standard output cannot be rotated") {
    options.output.path = "-";
    options.rotate_size = 1 << 20;
    CHECK(refused() == "standard output cannot be rotated");
  }
}

TEST_CASE("A name of cudabpf's own choice never replaces a file") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.output.own_choice = true;
  std::vector<std::unique_ptr<JsonlSink>> at_once;
  for (const char* name : {"t.jsonl", "t-2.jsonl", "t-3.jsonl"}) {
    auto sink = JsonlSink::open(options);
    REQUIRE(sink);
    CHECK((*sink)->written().path == folder.path() / name);
    at_once.push_back(std::move(*sink));
  }
}

TEST_CASE("Root does not follow a link to a folder that another user made") {
  if (::geteuid() != 0) SKIP("only root is not the owner here");
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "target");
  folder.link("traces", "target");
  JsonlOptions options;
  options.output.path = folder.path() / "traces" / "t.jsonl";
  options.output.own_choice = true;
  std::string link = folder.path() / "traces";
  REQUIRE(::lchown(link.c_str(), 12345, 23456) == 0);
  CHECK(!JsonlSink::open(options));
  CHECK(fs::is_empty(folder.path() / "target"));
  REQUIRE(::lchown(link.c_str(), 0, 0) == 0);
  CHECK(JsonlSink::open(options));
}

TEST_CASE("A path that names what is open is written to as it is") {
  TemporaryFolder folder;
  folder.write("t", "before\n");
  Fd file(::open((folder.path() / "t").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  REQUIRE(file);
  for (const char* folder_of : {"/dev/fd/", "/proc/self/fd/"}) {
    auto opened = TraceFile::create(folder_of + std::to_string(file.get()), true);
    REQUIRE(opened);
    CHECK(opened->is_stream());
    CHECK(opened->append_whole("line\n"));
  }
  CHECK(file_text(folder.path() / "t") == "before\nline\nline\n");
  for (const char* none : {"/dev/fd/-1", "/dev/fd/", "/dev/fd/999999", "/dev/fd/1x"})
    CHECK(!TraceFile::create(none, true));
}
