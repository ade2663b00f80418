#include "cli/request/pager.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "cli/request/invoker.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::cli;
using Environment = std::vector<std::string>;

namespace {

std::vector<std::string> command_of(const Environment& environment, Rights rights) {
  auto pager = pager_for(environment, rights);
  return pager ? pager->command : std::vector<std::string>{};
}

std::vector<std::string> by_shell(const std::string& command) { return {"/bin/sh", "-c", command}; }

bool less_is_here() {
  std::error_code missing;
  return std::filesystem::canonical("/usr/bin/less", missing).filename() == "less" && !missing;
}

}  // namespace

TEST_CASE("A user has the pager that the user wants") {
  auto own = [](const Environment& environment) { return command_of(environment, Rights::own); };
  CHECK(own({"PAGER=more -d", "PATH=/none"}) == by_shell("more -d"));
  CHECK(own({"PAGER=more", "CUDABPF_PAGER=most"}) == by_shell("most"));
  CHECK(own({"CUDABPF_PAGER=most", "PAGER=more"}) == by_shell("most"));
  CHECK(own({"PAGER="}).empty());
  CHECK(own({"PAGER=cat"}).empty());
  CHECK(own({"PAGER=more", "CUDABPF_PAGER="}).empty());
  CHECK(own({"PAGER=more", "CUDABPF_PAGER=cat"}).empty());
  CHECK(own({"PAGER=", "CUDABPF_PAGER=more"}) == by_shell("more"));
  CHECK(own({"PATH=/none"}).empty());  // less is not installed
}

TEST_CASE("less gets options for showing a page, unless the user has set others") {
  TemporaryFolder folder;
  std::filesystem::create_symlink("/bin/true", folder.path() / "less");
  auto pager = pager_for({"PATH=" + folder.path().string(), "HOME=/home/me"}, Rights::own);
  REQUIRE(pager);
  CHECK(pager->command == by_shell("less"));
  CHECK(value_in(pager->environment, "LESS") == "FRX");
  CHECK(value_in(pager->environment, "LESSCHARSET") == "utf-8");
  CHECK(value_in(pager->environment, "HOME") == "/home/me");
  pager = pager_for({"PATH=" + folder.path().string(), "LESS=", "LESSCHARSET=latin1"}, Rights::own);
  REQUIRE(pager);
  CHECK(pager->environment ==
        Environment{"PATH=" + folder.path().string(), "LESS=", "LESSCHARSET=latin1"});
}

TEST_CASE("With another's rights, no variable chooses a program or gives it a way to start one") {
  if (!less_is_here()) SKIP("there is no less");
  TemporaryFolder folder;
  std::filesystem::create_symlink("/bin/true", folder.path() / "less");
  auto pager = pager_for(
      {"PAGER=/tmp/mine", "CUDABPF_PAGER=sh", "PATH=" + folder.path().string(), "LESSOPEN=|sh %s",
       "LESS=+!sh", "LESSSECURE=", "LESSKEY=/tmp/mine", "LESSEDIT=sh", "EDITOR=sh", "VISUAL=sh",
       "SHELL=/tmp/mine", "HOME=/tmp", "LD_PRELOAD=/tmp/mine.so", "TERMINFO=/tmp", "TERM=xterm"},
      Rights::lent);
  REQUIRE(pager);
  CHECK(pager->command == std::vector{std::filesystem::canonical("/usr/bin/less").string()});
  CHECK(pager->environment == Environment{"LESSSECURE=1", "LESSHISTFILE=-", "LESS=FRX",
                                          "LESSCHARSET=utf-8", "PATH=/usr/bin:/bin", "TERM=xterm"});
  CHECK(command_of({"PAGER=cat"}, Rights::lent).empty());
  CHECK(command_of({"PAGER=more", "CUDABPF_PAGER="}, Rights::lent).empty());
}

TEST_CASE("With raised rights nothing is started") {
  CHECK(!pager_for({"PATH=/usr/bin:/bin", "PAGER=less"}, Rights::raised));
}

TEST_CASE("Rights are the user's own unless another user became that user, or it is root") {
  constexpr const char* NO_LOGIN = "4294967295";
  CHECK(rights_of(1000, {}, NO_LOGIN) == Rights::own);
  CHECK(rights_of(1000, {}, "") == Rights::own);
  CHECK(rights_of(1000, {}, "1000") == Rights::own);
  CHECK(rights_of(1000, {"SUDO_UID=1000"}, "1000") == Rights::own);  // as which it went on
  CHECK(rights_of(1000, {"SUDO_UID=1001"}, NO_LOGIN) == Rights::lent);
  CHECK(rights_of(1000, {}, "1001") == Rights::lent);
  CHECK(rights_of(1000, {"SUDO_UID=1000"}, "1001") == Rights::lent);
  CHECK(rights_of(0, {}, NO_LOGIN) == Rights::lent);
  CHECK(rights_of(0, {}, "0") == Rights::lent);
  CHECK(rights_of(0, {"SUDO_UID=0"}, "1000") == Rights::lent);
}
