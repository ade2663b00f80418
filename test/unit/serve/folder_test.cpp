#include "serve/folder.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::serve;
using Catch::Matchers::ContainsSubstring;

namespace {

Folder opened(const TemporaryFolder& folder, Folder::By by) {
  auto open = Folder::open(folder.path());
  if (!open) FAIL(open.error().message);
  open->open_by(by);
  return std::move(*open);
}

std::vector<std::string> names(const Contents& contents) {
  std::vector<std::string> names;
  for (const FoundTrace& trace : contents.traces) names.push_back(trace.name);
  return names;
}

std::string text_of(const Result<Fd>& fd) {
  if (!fd) return "refused: " + fd.error().message;
  char text[64];
  ssize_t got = ::read(fd->get(), text, sizeof(text));
  return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

constexpr Folder::By BOTH[] = {Folder::By::openat2, Folder::By::parts};

}  // namespace

TEST_CASE("Traces are in the folder and its subfolders, and are regular files") {
  TemporaryFolder outside, folder;
  outside.write("secret.jsonl", "secret");
  outside.write("in/secret.jsonl", "secret");
  folder.write("b.jsonl", "b");
  folder.write("a.jsonl.zst", "a");
  folder.write("run/c.jsonl", "c");
  folder.write("run/deeper/d.jsonl", "d");
  folder.write("notes.txt", "");
  folder.write(".hidden.jsonl", "");
  folder.write(".hidden/e.jsonl", "");
  folder.write("folder.jsonl/f.jsonl", "f");
  folder.link("link.jsonl", (outside.path() / "secret.jsonl").string());
  folder.link("here.jsonl", "b.jsonl");
  folder.link("away", outside.path().string());
  REQUIRE(::mkfifo((folder.path() / "fifo.jsonl").c_str(), 0600) == 0);

  for (Folder::By by : BOTH) {
    Folder open = opened(folder, by);
    auto contents = open.contents();
    REQUIRE(contents);
    CHECK(names(*contents) == std::vector<std::string>{"a.jsonl.zst", "b.jsonl",
                                                       "folder.jsonl/f.jsonl", "run/c.jsonl"});
    CHECK(contents->left_out == 0);
    CHECK(contents->unread.empty());
    CHECK(text_of(open.open_file("b.jsonl")) == "b");
    CHECK(text_of(open.open_file("run/c.jsonl")) == "c");
    std::string up = "../" + outside.path().filename().string() + "/secret.jsonl";
    for (const std::string& file :
         {std::string("link.jsonl"), std::string("here.jsonl"), std::string("away/secret.jsonl"),
          up, "run/../" + up, (outside.path() / "secret.jsonl").string(), std::string(".."),
          std::string(""), std::string("run//c.jsonl"), std::string("run/"), std::string("none"),
          std::string("b.jsonl\0x", 9), std::string("fifo.jsonl"), std::string("run"),
          std::string("/proc/self/root/etc/passwd"), std::string("./b.jsonl")})
      CHECK_THAT(text_of(open.open_file(file)), ContainsSubstring("refused"));
  }
}

TEST_CASE("A subfolder that becomes a link is not followed") {
  TemporaryFolder outside, folder;
  outside.write("c.jsonl", "secret");
  folder.write("run/c.jsonl", "c");
  for (Folder::By by : BOTH) {
    Folder open = opened(folder, by);
    CHECK(text_of(open.open_file("run/c.jsonl")) == "c");
    std::filesystem::rename(folder.path() / "run", folder.path() / "was");
    folder.link("run", outside.path().string());
    CHECK_THAT(text_of(open.open_file("run/c.jsonl")), ContainsSubstring("refused"));
    CHECK(names(*open.contents()) == std::vector<std::string>{"was/c.jsonl"});
    std::filesystem::remove(folder.path() / "run");
    std::filesystem::rename(folder.path() / "was", folder.path() / "run");
  }
}

TEST_CASE("The parts of a rotated trace are one") {
  TemporaryFolder folder;
  for (const char* name :
       {"t.0001.jsonl.zst", "t.0002.jsonl.zst", "t.0010.jsonl.zst", "t.jsonl", "t.0003.jsonl",
        "t.9999.jsonl.zst", "t.10000.jsonl.zst", "t.*.jsonl", "t.00001.jsonl", "u.001.jsonl",
        "u.002.jsonl", "run/t.0004.jsonl.zst", ".0001.jsonl"})
    folder.write(name, name);
  auto contents = opened(folder, Folder::By::openat2).contents();
  REQUIRE(contents);
  CHECK(names(*contents) ==
        std::vector<std::string>{"t.*.jsonl", "t.0003.jsonl", "t.0001.jsonl.zst", "t.00001.jsonl",
                                 "t.jsonl", "u.001.jsonl", "u.002.jsonl", "run/t.0004.jsonl.zst"});
  const FoundTrace& rotated = contents->traces[2];
  CHECK(rotated.files == std::vector<std::string>{"t.0001.jsonl.zst", "t.0002.jsonl.zst",
                                                  "t.0010.jsonl.zst", "t.9999.jsonl.zst",
                                                  "t.10000.jsonl.zst"});
  CHECK(rotated.stamps.size() == 5);
  CHECK(rotated.size() == 4 * 16 + 17);
}

TEST_CASE("A file that changes has another stamp") {
  TemporaryFolder folder;
  folder.write("t.jsonl", "1");
  Folder open = opened(folder, Folder::By::openat2);
  auto stamps = [&] { return open.contents()->traces.front().stamps; };
  auto before = stamps();
  CHECK(stamps() == before);
  folder.write("t.jsonl", "12");
  auto grown = stamps();
  CHECK(grown != before);
  folder.write("other", "12");
  std::filesystem::rename(folder.path() / "other", folder.path() / "t.jsonl");
  CHECK(stamps() != grown);
}

TEST_CASE("More traces than are shown are counted") {
  TemporaryFolder folder;
  for (std::size_t i = 0; i < Folder::MAX_TRACES + 3; i++)
    folder.write(std::to_string(i) + ".jsonl", "");
  auto contents = opened(folder, Folder::By::openat2).contents();
  REQUIRE(contents);
  CHECK(contents->traces.size() == Folder::MAX_TRACES);
  CHECK(contents->left_out == 3);
}

TEST_CASE("What is no folder cannot be served") {
  TemporaryFolder folder;
  folder.write("t.jsonl", "");
  CHECK_THAT(Folder::open(folder.path() / "none").error().message,
             ContainsSubstring("No such file or directory"));
  CHECK_THAT(Folder::open(folder.path() / "t.jsonl").error().message,
             ContainsSubstring("Not a directory"));
}
