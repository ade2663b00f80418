#include "collect/inside/listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>

#include "support/temporary_folder.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

namespace {

Listener opened(const std::string& among) {
  auto path = Listener::choose_path(among);
  REQUIRE(path);
  auto listener = Listener::open(*path, {geteuid()});
  REQUIRE(listener);
  return std::move(*listener);
}

void make_old(const fs::path& folder) {
  timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  REQUIRE(utimensat(AT_FDCWD, folder.c_str(), long_ago, 0) == 0);
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// What is left of a listener if its cudabpf is killed.
fs::path left_listener(const fs::path& among, const std::string& name) {
  fs::path folder = among / name;
  fs::create_directory(folder);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = (folder / "listener").string();
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return folder;
}

}  // namespace

TEST_CASE("A listener is removed with its folder") {
  TemporaryFolder among;
  {
    Listener listener = opened(among.path());
    CHECK(entries(among.path()) == 1);
  }
  CHECK(entries(among.path()) == 0);
}

TEST_CASE("A listener that a killed cudabpf has left is removed, and no other") {
  TemporaryFolder scratch;
  fs::path among = scratch.path();
  Listener open = opened(among);
  for (const auto& entry : fs::directory_iterator(among)) make_old(entry.path());
  fs::path left = left_listener(among, "cudabpf-00000000000000aa");
  make_old(left);
  fs::path young = left_listener(among, "cudabpf-00000000000000bb");
  fs::path other = left_listener(among, "another-00000000000000cc");
  make_old(other);
  fs::path longer = among / "cudabpf-test-0000000000000";
  fs::create_directory(longer);
  make_old(longer);
  fs::path full = left_listener(among, "cudabpf-00000000000000dd");
  scratch.write("cudabpf-00000000000000dd/something", "");
  make_old(full);

  Listener another = opened(among);
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(young / "listener"));
  CHECK(fs::exists(other / "listener"));
  CHECK(fs::exists(longer));
  CHECK(fs::exists(full / "something"));
  CHECK(entries(among) == 6);
}

TEST_CASE("A listener for all takes the place of one that was killed, and not of a living one") {
  TemporaryFolder scratch;
  fs::path folder = left_listener(scratch.path(), "run");
  std::string path = (folder / "listener").string();
  {
    auto listener = Listener::open_for_all(path);
    REQUIRE(listener);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0666);
    auto second = Listener::open_for_all(path);
    REQUIRE_FALSE(second);
    CHECK(second.error().message.find("another cudabpf listens there") != std::string::npos);
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(folder));  // others may need it
}

TEST_CASE("A listener for all does not replace what is no socket") {
  TemporaryFolder scratch;
  std::string path = scratch.write("listener", "a file");
  CHECK_FALSE(Listener::open_for_all(path));
  CHECK(fs::file_size(path) == 6);
}
