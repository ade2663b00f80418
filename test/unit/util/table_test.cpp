#include "util/page/table.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

Page page_of(unsigned width) { return Page({.width = width}, 160); }

struct Item {
  std::string name;
  std::uint64_t count = 0;
  void add(const Item& other) { count += other.count; }
};

}  // namespace

TEST_CASE("A table is as wide as what is in it") {
  Table table("fruit", {{"count"}, {"colour", 0, true}, {"none"}});
  table.row("apple", {"1,000", "red", ""});
  table.row("fig", {"7", "µ", ""});
  Page page = page_of(80);
  table.add_to(page);
  std::string text = page.take();
  CHECK(text ==
        "fruit    count  colour\n"
        "  apple  1,000  red\n"
        "  fig        7  µ\n");
}

TEST_CASE("A narrow page has fewer columns, and names of a readable length") {
  Table table("t", {{"kept"}, {"first to go", 2}, {"second to go", 1}});
  table.row(std::string(40, 'n'),
            {std::string(20, '1'), std::string(20, '2'), std::string(20, '3')});
  auto at = [&](unsigned width) {
    Page page = page_of(width);
    table.add_to(page);
    return page.take();
  };
  CHECK(at(120).find("first to go") != std::string::npos);
  std::string narrow = at(80);
  CHECK(narrow.find("first to go") == std::string::npos);
  CHECK(narrow.find("second to go") != std::string::npos);
  CHECK(narrow.find("nn…nn") != std::string::npos);
  CHECK(narrow.find("kept") != std::string::npos);
}

TEST_CASE("A long name keeps its beginning and its end, or its template arguments") {
  auto cut = [](const std::string& name) {
    Table table("t", {{"", 0, true}});
    table.row(name, {std::string(50, 'x')});
    Page page = page_of(80);
    table.add_to(page);
    std::string text = page.take();
    std::size_t begin = text.find('\n') + 3;
    return text.substr(begin, text.find(' ', begin) - begin);
  };
  CHECK(cut("a_name_of_26_characters_is") == "a_name_of_26_characters_is");
  CHECK(cut("sm80_xmma_gemm_f32f32_execute_kernel_cublas") == "sm80_xmma_gemm_f3…l_cublas");
  CHECK(cut("vectorized_elementwise_kernel<add>") == "vectorized_elementwi…<add>");
  CHECK(cut("vectorized_elementwise_kernel<launch_clamp_scalar>") == "vectorized_…<launch_clamp…");
  CHECK(cut(std::string(20, 'a') + "äöüäöüäöüäöü") == std::string(17, 'a') + "…öüäöüäöü");
}

TEST_CASE("What a trace's text holds does not reach the terminal") {
  Table table("t", {{"what", 0, true}});
  table.row("a\033[2J", {"b\n"});
  Page page = page_of(80);
  table.add_to(page);
  std::string text = page.take();
  CHECK(text == "t        what\n  a?[2J  b?\n");
}

TEST_CASE("What is too much for a table is one row") {
  auto rows = [](std::size_t at_most) {
    std::vector<Item> items = {{"a", 5}, {"b", 4}, {"c", 3}, {"d", 2}};
    Table table("t", {{"count"}});
    add_rows(table, items, at_most, "letters",
             [](const Item& item) { return std::vector{std::to_string(item.count)}; });
    Page page = page_of(80);
    table.add_to(page);
    return page.take();
  };
  CHECK(rows(2) ==
        "t                 count\n  a                   5\n  b                   4\n"
        "  2 more letters      5\n");
  CHECK(rows(3) == "t    count\n  a      5\n  b      4\n  c      3\n  d      2\n");
}

TEST_CASE("Columns that did not fit are named, once") {
  Page page = page_of(80);
  for (int i = 0; i < 2; i++) {
    Table table("t", {{"kept"}, {"gone", 1}, {"empty", 2}});
    table.row("name", {std::string(60, 'x'), std::string(30, 'x'), ""});
    table.add_to(page);
  }
  page.take();
  page.say_left_out();
  std::string text = page.take();
  CHECK(text.find("hidden columns: gone (") != std::string::npos);
  CHECK(text.find("empty") == std::string::npos);
  page.say_left_out();
  CHECK(page.take().empty());
}

TEST_CASE("Text of any length leaves a table as wide as the page; figures are never cut") {
  Table table("t", {{"n"}, {"error", 0, true}, {"spare", 1, true}, {"by", 0, true}});
  table.row(std::string(5000, 'a'),
            {std::string(12, '1'), std::string(5000, 'b'), "x", "東東東東東東東"});
  for (unsigned width : {40, 60, 80, 100, 160}) {
    Page page = page_of(width);
    table.add_to(page);
    std::string text = page.take();
    CHECK(text.find(' ' + std::string(12, '1')) != std::string::npos);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      CHECK(width_of(text.substr(at, text.find('\n', at) - at)) <= width);
  }
}

TEST_CASE("A narrow page has short names, then fewer columns, even of those that were to stay") {
  Table table("t", {{"count"}, {"total"}, {"error", 0, true}, {"last"}});
  table.row("cuOccupancyMaxActiveBlocksPerMultiprocessor",
            {"1,234", "12.3 ms", "CUDA_ERROR_OUT_OF_MEMORY", "3.141592 s"});
  auto at = [&](unsigned width) {
    Page page = page_of(width);
    table.add_to(page);
    std::string text = page.take();
    page.say_left_out();
    return text + page.take();
  };
  CHECK(at(80) ==
        "t                             count    total  error                         last\n"
        "  cuOccupancyMaxAct…rocessor  1,234  12.3 ms  CUDA_ERROR_OUT_OF_MEM…  3.141592 s\n");
  CHECK(at(60) ==
        "t                   count    total  error               last\n"
        "  cuOccupanc…essor  1,234  12.3 ms  CUDA_ERROR_…  3.141592 s\n");
  CHECK(at(40) ==
        "t                         count    total\n"
        "  cuOccupancyMax…ocessor  1,234  12.3 ms\n"
        "\n"
        "  hidden columns: last, error (widen the\n"
        "  terminal, set COLUMNS=160, or use\n"
        "  --json)\n");
}

TEST_CASE("A title that is longer than the names is above the table") {
  Table table("what the programs got from the driver", {{"n"}});
  table.row("a name of 26 characters is", {std::string(12, '1')});
  Page page = page_of(40);
  table.add_to(page);
  CHECK(page.take() ==
        "what the programs got from the driver\n"
        "                                       n\n"
        "  a name of 26 ch…cters is  111111111111\n");
}
