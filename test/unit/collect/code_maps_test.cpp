#include "collect/code_maps.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

namespace {

struct Maps : CodeMaps {
  void map(std::uint64_t ts, std::uint64_t from, std::uint64_t to, const std::string& path,
           std::uint32_t pid = 7) {
    mapped({ts, pid, from, to, 0, 1, 2, path});
  }
  std::string path_at(std::uint64_t address, std::uint64_t ts, std::uint32_t pid = 7) const {
    const MappedCode* code = at(pid, address, ts);
    return code ? code->path : "-";
  }
};

std::vector<Mapping> found(const std::string& line) { return parse_maps(line + "\n"); }

}  // namespace

TEST_CASE("an address is of the file that was there at that moment", "[code_maps]") {
  Maps maps;
  maps.map(9, 0x1000, 0x3000, "/program");
  maps.executed(7, 10);
  maps.map(20, 0x8000, 0x9000, "/one");
  maps.map(30, 0x8800, 0xa000, "/other");
  CHECK(maps.path_at(0x1000, 10) == "/program");
  CHECK(maps.path_at(0x3000, 10) == "-");
  CHECK(maps.path_at(0x8900, 19) == "-");
  CHECK(maps.path_at(0x8900, 29) == "/one");
  CHECK(maps.path_at(0x8900, 30) == "/other");
  CHECK(maps.path_at(0x8700, 30) == "/one");
  CHECK(maps.path_at(0x1000, 9) == "-");  // before the process is known
  CHECK(maps.path_at(0x1000, 10, 8) == "-");
  maps.ended(7);
  CHECK(maps.path_at(0x1000, 40) == "-");
}

TEST_CASE("a process that was running is known from when it was looked through", "[code_maps]") {
  Maps maps;
  maps.map(5, 0x8000, 0x9000, "/before");
  maps.looked_through(7, found("8000-9000 r-xp 00001000 08:01 42 /there"), 10);
  CHECK(maps.path_at(0x8000, 9) == "-");
  CHECK(maps.path_at(0x8000, 10) == "/there");
  REQUIRE(maps.at(7, 0x8000, 10));
  CHECK(maps.at(7, 0x8000, 10)->offset == 0x1000);
  CHECK(maps.at(7, 0x8000, 10)->inode == 42);
  maps.map(12, 0x8000, 0x9000, "/later");
  CHECK(maps.path_at(0x8000, 11) == "/there");
  CHECK(maps.path_at(0x8000, 12) == "/later");
  maps.looked_through(9, {}, 20);  // it has ended
  CHECK_FALSE(maps.knows(9));
  CHECK(maps.knows(7));
  maps.lost(25);
  CHECK(maps.path_at(0x8000, 30) == "-");
  maps.executed(7, 24);  // which is read only now: what it mapped may be lost
  CHECK_FALSE(maps.knows(7));
  maps.executed(7, 26);
  CHECK(maps.knows(7));
}

TEST_CASE("a look says nothing of the time before, though it is what is read first",
          "[code_maps]") {
  Maps maps;
  maps.map(11, 0x1000, 0x2000, "/program");
  maps.map(15, 0x8000, 0x9000, "/gamma");
  maps.map(20, 0x8000, 0x9000, "/delta");
  maps.map(22, 0x6000, 0x7000, "/closed by then");
  maps.map(25, 0x8000, 0x9000, "/gamma");
  maps.looked_through(7,
                      parse_maps("1000-2000 r-xp 00000000 08:01 41 /program\n"
                                 "8000-9000 r-xp 00000000 08:01 42 /gamma\n"),
                      30);
  maps.executed(7, 12);
  maps.map(35, 0x8000, 0x9000, "/delta");
  CHECK(maps.path_at(0x1000, 13) == "/program");
  CHECK(maps.path_at(0x8000, 16) == "/gamma");
  CHECK(maps.path_at(0x8000, 21) == "/delta");
  CHECK(maps.path_at(0x6000, 23) == "/closed by then");
  CHECK(maps.path_at(0x8000, 31) == "/gamma");
  CHECK(maps.path_at(0x8000, 36) == "/delta");
  // A child that was forked before the look is looked through itself.
  maps.looked_through(8, found("8000-9000 r-xp 00001000 08:01 42 /there"), 40);
  maps.forked(8, 9, 35);
  CHECK_FALSE(maps.knows(9));
}

TEST_CASE("a process that maps more than is kept is unknown until a later program", "[code_maps]") {
  Maps maps;
  maps.executed(7, 10);
  for (std::uint64_t i = 0; i <= 8192; i++)
    maps.map(20 + i, 0x10000 + i * 0x1000, 0x11000 + i * 0x1000, "/many");
  CHECK_FALSE(maps.knows(7));
  maps.executed(7, 30);  // of before that, but read later
  CHECK_FALSE(maps.knows(7));
  maps.executed(7, 9000);
  CHECK(maps.knows(7));
}

TEST_CASE("a program is known that had ended before its process was looked through",
          "[code_maps]") {
  Maps maps;
  maps.map(1, 0x8000, 0x9000, "/shell");
  maps.map(11, 0x8000, 0x9000, "/program");
  maps.map(15, 0x6000, 0x7000, "/library");
  maps.looked_through(7, {}, 30);  // when its start was read
  CHECK_FALSE(maps.knows(7));
  maps.executed(7, 12);  // then what came after
  CHECK(maps.path_at(0x8000, 11) == "-");
  CHECK(maps.path_at(0x8000, 20) == "/program");
  CHECK(maps.path_at(0x6000, 20) == "/library");
}

TEST_CASE("a child has what its parent had when it was forked", "[code_maps]") {
  Maps maps;
  maps.map(1, 0x100, 0x200, "/stale", 8);  // of an earlier process with the child's pid
  maps.executed(7, 10);
  maps.map(11, 0x8000, 0x9000, "/one");
  maps.map(21, 0x8000, 0x9000, "/of the parent");
  maps.map(25, 0x6000, 0x7000, "/of the child", 8);
  maps.forked(7, 8, 20);
  CHECK(maps.path_at(0x8000, 30, 8) == "/one");
  CHECK(maps.path_at(0x8000, 30) == "/of the parent");
  CHECK(maps.path_at(0x6000, 30, 8) == "/of the child");
  CHECK(maps.path_at(0x100, 30, 8) == "-");
  maps.forked(99, 12, 20);  // a parent that is not known
  CHECK_FALSE(maps.knows(12));
}
