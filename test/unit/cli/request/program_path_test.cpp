#include "cli/request/program_path.hpp"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"

using namespace cudabpf::cli;
namespace fs = std::filesystem;

namespace {

struct Folders : TemporaryFolder {
  std::string add(const std::string& name, bool executable) const {
    fs::path file = write(name, "#!/bin/sh\n");
    fs::permissions(file, executable ? fs::perms(0755) : fs::perms(0644));
    return file.string();
  }
  // A PATH of these folders of it.
  std::vector<std::string> environment(const std::vector<std::string>& names) const {
    std::string value;
    for (const std::string& name : names)
      value += (value.empty() ? "" : ":") + (path() / name).string();
    return {"OTHER=1", "PATH=" + value};
  }
};

}  // namespace

TEST_CASE("A program is the first that can be executed on PATH") {
  Folders folders;
  std::string first = folders.add("a/tool", true), second = folders.add("b/tool", true);
  std::string hidden = folders.add("a/other", false), other = folders.add("c/other", true);
  CHECK(find_program("tool", folders.environment({"a", "b"})) == first);
  CHECK(find_program("tool", folders.environment({"b", "a"})) == second);
  CHECK(find_program("tool", folders.environment({"missing", "c", "b"})) == second);
  CHECK(find_program("other", folders.environment({"a", "b", "c"})) == other);
  CHECK(find_program("missing", folders.environment({"a", "b", "c"})).empty());
}

TEST_CASE("Where none can be executed, the first that is there is to blame") {
  Folders folders;
  std::string first = folders.add("a/tool", false);
  folders.add("b/tool", false);
  CHECK(find_program("tool", folders.environment({"c", "a", "b"})) == first);
}

TEST_CASE("A folder is no program, though it can be entered") {
  Folders folders;
  fs::create_directories(folders.path() / "a/tool");
  std::string file = folders.add("b/tool", true);
  CHECK(find_program("tool", folders.environment({"a", "b"})) == file);
  CHECK(find_program("tool", folders.environment({"a"})).empty());
}

TEST_CASE("A path is taken as it is, wherever it leads") {
  Folders folders;
  folders.add("a/tool", true);
  for (const char* path : {"./tool", "/no/such/tool", "a/tool", "/"})
    CHECK(find_program(path, folders.environment({"a"})) == path);
}

TEST_CASE("An empty part of PATH is the current folder; an empty PATH is that of shells") {
  Folders folders;
  folders.add("here-alone", true);
  fs::path before = fs::current_path();
  fs::current_path(folders.path());
  for (const char* path : {"PATH=:/nowhere", "PATH=/nowhere:", "PATH=/nowhere::/else", "PATH=:"}) {
    CAPTURE(path);
    CHECK(find_program("here-alone", {path}) == "./here-alone");
  }
  CHECK(find_program("here-alone", {"PATH=/nowhere"}).empty());
  CHECK(find_program("here-alone", {"PATH="}).empty());
  fs::current_path(before);
  for (const std::vector<std::string>& environment :
       {std::vector<std::string>{}, std::vector<std::string>{"PATH="}})
    CHECK(find_program("sh", environment).ends_with("/bin/sh"));
}

TEST_CASE("What env starts, and in which environment") {
  using Words = std::vector<std::string>;
  auto check = [](Words arguments, std::size_t program, const Words& environment) {
    Launched launched = behind_env(arguments, {"A=1", "B=2"});
    CHECK(launched.program == program);
    CHECK(launched.environment == environment);
  };
  check({"./app", "C=3"}, 0, {"A=1", "B=2"});
  check({"env", "C=3", "A=4", "./app", "D=5"}, 3, {"B=2", "C=3", "A=4"});
  check({"/usr/bin/env", "-u", "A", "--unset=B", "./app"}, 4, {});
  check({"env", "-i", "C=3", "env", "D=4", "./app"}, 5, {"C=3", "D=4"});
  check({"env", "-C", "/tmp", "--", "./app"}, 4, {"A=1", "B=2"});
  // Nothing is started, or env finds out itself what.
  check({"env"}, 0, {"A=1", "B=2"});
  check({"env", "C=3"}, 0, {"A=1", "B=2"});
  check({"env", "-S", "C=3 ./app"}, 0, {"A=1", "B=2"});
  check({"env", "-u"}, 0, {"A=1", "B=2"});
}
