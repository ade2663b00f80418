#include "util/system/file_id.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch_test_macros.hpp>

#include "support/temporary_folder.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;

namespace {

FileId id_of(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto id = FileId::of(fd.get());
  REQUIRE(id);
  return *id;
}

}  // namespace

TEST_CASE("Names of one file are distinguished from copies of it") {
  TemporaryFolder folder;
  std::string path = folder.write("a", "text"), copy = folder.write("b", "text");
  std::filesystem::create_hard_link(path, folder.path() / "hard");
  std::filesystem::create_symlink(path, folder.path() / "soft");
  CHECK(id_of(path).same_file(id_of(folder.path() / "hard")));
  CHECK(id_of(path).same_file(id_of(folder.path() / "soft")));
  CHECK_FALSE(id_of(path).same_file(id_of(copy)));
  Fd itself(open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(FileId::of(itself.get()));
  CHECK_FALSE(FileId::of(-1));
}

TEST_CASE("One file may have several devices, where filesystems lie over each other") {
  FileId below{.device = makedev(8, 1), .inode = 77, .size = 4, .modified_ns = 5, .changed_ns = 6};
  FileId above = below;
  above.device = makedev(0, 40);
  CHECK_FALSE(above.same_file(below));
  above.device_varies = true;
  CHECK(above.same_file(below));
  CHECK(below.same_file(above));
  CHECK(above.is_mapped_as(below.device, below.inode));
  CHECK_FALSE(below.is_mapped_as(above.device, below.inode));
  CHECK_FALSE(above.is_mapped_as(below.device, 78));
  above.inode |= std::uint64_t{1} << 63;  // the layer's number
  CHECK(above.same_file(below));
  CHECK(above.is_mapped_as(below.device, below.inode));
  above.changed_ns++;  // a copy, made when it was written to
  CHECK_FALSE(above.same_file(below));
}

TEST_CASE("A file that was written to, or whose inode is another's now, is not what it was") {
  TemporaryFolder folder;
  auto path = folder.write("file", "one");
  FileId before = id_of(path);
  CHECK(id_of(path).untouched_since(before));
  FileId changed = before;
  changed.changed_ns++;
  CHECK(changed.same_content(before));
  CHECK_FALSE(changed.untouched_since(before));
  changed = before;
  changed.modified_ns++;
  CHECK(changed.same_file(before));
  CHECK_FALSE(changed.same_content(before));
  changed = before;
  changed.size++;
  CHECK_FALSE(changed.same_content(before));
}
