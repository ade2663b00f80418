#include "analyze/columns.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

struct Named {
  std::string name = "none";
  std::uint64_t count = 0;
  Durations times;
  std::array<std::uint32_t, 3> grid{};
};
struct Shown {
  std::uint64_t all;
};

constexpr Column<Named, Shown> COLUMNS[] = {
    {{"name"}, As::text, its<&Named::name>, {2, "called", WIDE}},
    {{"count", "count"}, As::count, its<&Named::count>, {1, "calls", BAR}},
    {{nullptr, "share", 1, 2},
     As::percent,
     [](auto& of, auto& shown) { return share(of.count, shown.all); }},
    {{"total_us", "total"}, As::timed, its<&Named::times, total_of>},
    {{"max_us", "max"}, As::timed, its<&Named::times, max_of>},
    {{"grid", "grid"}, As::dimensions, its<&Named::grid>},
    {{"times"}, As::object, [](auto& of) { return times_json(of.times); }},
    {{"times.p50_us", "p50"}, As::time, its<&Named::times, p50_of>, {3, "half", IF_KNOWN}},
};

Named timed_row() {
  Named row;
  row.name = "one";
  row.count = 2048;
  row.grid = {4, 2, 1};
  row.times.add(1500);
  return row;
}

}  // namespace

TEST_CASE("Columns make the JSON of a row, with what is known of it") {
  CHECK(json_of(timed_row(), COLUMNS, Shown{4096}).dump() ==
        R"({"name":"one","count":2048,"total_us":1.5,"max_us":1.5,"grid":[4,2,1],"times":)"
        R"({"count":1,"total_us":1.5,"p50_us":1.5,"p99_us":1.5,"max_us":1.5}})");
  CHECK(list_of(std::vector<Named>(1), COLUMNS, Shown{1}).dump() ==
        R"([{"name":"none","count":0,"total_us":0.0,"grid":[0,0,0],)"
        R"("times":{"count":0,"total_us":0.0}}])");
}

TEST_CASE("Columns make the cells of a table, and those at a loss are left out") {
  for (bool other : {false, true}) {
    Terminal terminal;
    terminal.width = 80;
    Page page(terminal);
    Table table = table_of("rows", COLUMNS, 26, other);
    auto cells = cells_in(COLUMNS, page, {4096});
    CHECK(cells(timed_row()) ==
          std::vector<std::string>{"2,048", "50.0 %", "1.50 µs", "1.50 µs", "4×2", "1.50 µs"});
    CHECK(cells({}) == std::vector<std::string>{"0", "0.0 %", "-", "-", "", ""});
    table.row("one", cells(timed_row()));
    table.add_to(page);
    CHECK(page.take() ==
          "rows   count   share    total      max  grid      p50\n"
          "  one  2,048  50.0 %  1.50 µs  1.50 µs   4×2  1.50 µs\n");
  }
}

TEST_CASE("Columns say which keys the page shows, from left to right") {
  CHECK(page_columns(COLUMNS).dump() ==
        R"([{"key":"count","title":"calls","as":"count","bar":true},)"
        R"({"key":"name","title":"called","as":"text","wide":true},)"
        R"({"key":"times.p50_us","title":"half","as":"time","if_known":true}])");
}
