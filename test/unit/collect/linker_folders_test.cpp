#include "collect/linker_folders.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "support/temporary_folder.hpp"

using namespace cudabpf;

namespace {

using Folders = std::vector<std::string>;

struct Configuration : TemporaryFolder {
  // The folders that are searched besides those that are known without configuration.
  Folders folders(std::string_view library_path = {},
                  const std::string& file = "ld.so.conf") const {
    Folders all = linker_folders(library_path, (path() / file).string());
    Folders always = linker_folders({}, (path() / "missing").string());
    REQUIRE(all.size() >= always.size());
    auto rest = all.end() - static_cast<std::ptrdiff_t>(always.size());
    CHECK(std::equal(rest, all.end(), always.begin()));
    all.erase(rest, all.end());
    return all;
  }
};

}  // namespace

TEST_CASE("Some folders are known without any configuration, the system's own before others") {
  Folders always = linker_folders({}, "/no/such/file");
  auto at = [&](const char* folder) { return std::find(always.begin(), always.end(), folder); };
  REQUIRE(at("/usr/lib64") != always.end());
  REQUIRE(at("/usr/lib/wsl/lib") != always.end());
  CHECK(at("/usr/lib64") < at("/usr/lib/wsl/lib"));
}

TEST_CASE("LD_LIBRARY_PATH comes first, whichever way it is written") {
  Configuration configuration;
  configuration.write("ld.so.conf", "/configured\n");
  CHECK(configuration.folders("/a") == Folders{"/a", "/configured"});
  CHECK(configuration.folders("/a:/b;/c") == Folders{"/a", "/b", "/c", "/configured"});
  CHECK(configuration.folders(":/a::;/b;") == Folders{"/a", "/b", "/configured"});
  CHECK(configuration.folders("relative:/a/") == Folders{"relative", "/a/", "/configured"});
  CHECK(configuration.folders(":") == Folders{"/configured"});
  CHECK(configuration.folders("") == Folders{"/configured"});
}

TEST_CASE("The linker's configuration is read as the linker reads it") {
  Configuration configuration;
  configuration.write("ld.so.conf",
                      "# /comment\n"
                      "/plain\n"
                      "/behind # /comment\n"
                      "/blanks \t \n"
                      "\n"
                      "   \n"
                      "relative\n"
                      "hwcap 0 nosegneg\n"
                      "/with blank\n"
                      "include\n"
                      "include \n"
                      "/no/newline");
  CHECK(configuration.folders() ==
        Folders{"/plain", "/behind", "/blanks", "/with blank", "/no/newline"});
  configuration.write("ld.so.conf", "");
  CHECK(configuration.folders().empty());
}

TEST_CASE(
    "Included files take the place where they are included, sorted, absolute or beside the first") {
  Configuration configuration;
  configuration.write("conf.d/b.conf", "/b\n");
  configuration.write("conf.d/a.conf", "/a\n");
  configuration.write("conf.d/c.other", "/other\n");
  configuration.write("deep/d.conf", "/d\ninclude conf.d/a.conf\n");
  configuration.write("ld.so.conf",
                      "/first\ninclude\tconf.d/*.conf\ninclude missing/*.conf\ninclude " +
                          (configuration.path() / "deep/d.conf").string() +
                          " # and no more\n/last\n");
  CHECK(configuration.folders() == Folders{"/first", "/a", "/b", "/d", "/a", "/last"});
}

TEST_CASE("Files that include themselves, or folders, come to an end") {
  Configuration configuration;
  configuration.write("ld.so.conf", "/again\ninclude ld.so.conf\n");
  CHECK(configuration.folders() == Folders(5, "/again"));
  configuration.write("ld.so.conf", "include conf.d\ninclude conf.d/*\n/end\n");
  configuration.write("conf.d/folder/file", "/inside\n");
  CHECK(configuration.folders() == Folders{"/end"});
}

TEST_CASE("Bytes that are no text do no harm") {
  Configuration configuration;
  configuration.write("ld.so.conf", std::string_view("\0\xff\n/a\0b\n\xfe/c\n/\xff\n", 15));
  CHECK(configuration.folders() == Folders{std::string("/a\0b", 4), "/\xff"});
}
