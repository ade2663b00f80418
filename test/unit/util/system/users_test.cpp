#include "util/system/users.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/temporary_folder.hpp"

using namespace cudabpf;

TEST_CASE("Users and groups as files have them") {
  TemporaryFolder etc;
  Users users = Users::in(etc.path());
  SECTION("of files that are there") {
    etc.write("passwd",
              "root:x:0:0:root:/root:/bin/sh\n"
              "not a line\n"
              "ada:x:1000:1001:Ada,,,:/home/ada:/bin/bash\n");
    etc.write("group",
              "root:x:0:\n"
              "ada:x:1001:ada\n"
              "video:x:44:bob,ada\n"
              "adas:x:45:adas\n"
              "render:x:105:ada");  // as an editor leaves it
    auto ada = users.named("ada");
    REQUIRE(ada);
    CHECK(ada->uid == 1000);
    CHECK(ada->gid == 1001);
    CHECK(ada->groups == std::vector<gid_t>{1001, 44, 105});
    CHECK(users.numbered(1000)->name == "ada");
    CHECK_FALSE(users.named("bob"));  // no user, though in a group
    CHECK_FALSE(users.numbered(7));
    // A user that a name service knows, and the files do not.
    CHECK(users.with_groups(5000, 5001, "eve").groups == std::vector<gid_t>{5001});
    CHECK(users.with_groups(5000, 5001, "bob").groups == std::vector<gid_t>{5001, 44});
  }
  SECTION("where there are none") {
    CHECK_FALSE(users.named("root"));
    CHECK(users.with_groups(1000, 1001, "ada").groups == std::vector<gid_t>{1001});
  }
}

TEST_CASE("This machine's users") {
  auto root = Users::of_machine().numbered(0);
  REQUIRE(root);
  CHECK(root->gid == 0);
  CHECK(Users::of_machine().named(root->name)->uid == 0);
  CHECK_FALSE(Users::of_machine().named("no:body"));
}
