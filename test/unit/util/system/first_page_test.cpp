#include "util/system/first_page.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;

TEST_CASE("One file has one first page, another file another") {
  TemporaryFolder folder;
  auto path = folder.write("a", "contents");
  auto copy = folder.write("b", "contents");
  std::filesystem::create_hard_link(path, folder.path() / "c");
  auto page_of = [](const std::filesystem::path& file) {
    Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    return FirstPage::of(fd.get());
  };
  auto page = page_of(path), same = page_of(folder.path() / "c"), other = page_of(copy);
  REQUIRE((page && same && other));
  if (!page->is_same_as(*page)) SKIP("the kernel shows pages only to root");
  CHECK(page->is_same_as(*same) == true);
  CHECK(page->is_same_as(*other) == false);
  std::filesystem::resize_file(copy, 0);  // touching it would raise SIGBUS
  CHECK_FALSE(page->is_same_as(*other));
  CHECK_FALSE(page_of("/nowhere"));
}
