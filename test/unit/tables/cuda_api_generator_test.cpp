// scripts/gen-cuda-api.py
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "generating.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"

namespace {

struct Table {
  std::string rows, header = "symbol\tname\ttype\top\tprofile\targs\tattrs\n";
  std::string meanings = "init\t*\tsetup\nother\t*\tother\n";
  std::string results = "0\tSUCCESS\n";
};

// What scripts/gen-cuda-api.py says about a table, and what it makes of it.
struct Generated {
  int status;
  std::string message, table, words;
};

std::vector<Generated> generate(const std::vector<Table>& tables) {
  TemporaryFolder folder;
  auto path = [&](const char* what, std::size_t i) {
    return (folder.path() / (what + std::to_string(i))).string();
  };
  std::vector<std::vector<std::string>> runs;
  for (std::size_t i = 0; i < tables.size(); i++) {
    folder.write("in" + std::to_string(i) + ".tsv",
                 "# a comment\n" + tables[i].header + tables[i].rows);
    folder.write("meanings" + std::to_string(i), "type\top\twork\tfacts\n" + tables[i].meanings);
    std::filesystem::create_directory(path("results", i));
    folder.write("results" + std::to_string(i) + "/in" + std::to_string(i) + ".tsv",
                 "number\tname\n" + tables[i].results);
    runs.push_back({path("meanings", i), path("table", i), path("words", i), path("results", i),
                    path("in", i) + ".tsv"});
  }
  std::vector<Generated> generated;
  for (const auto& [status, message] : run_generator("gen-cuda-api.py", runs)) {
    std::size_t i = generated.size();
    generated.push_back(
        {status, message, file_text(path("table", i)), file_text(path("words", i))});
  }
  return generated;
}

}  // namespace

TEST_CASE("The generator turns rows into a table, sorted") {
  const std::string rows =
      "cuB\tcuB\tmemory\talloc\tlight\tp:out.ptr, f:f32, w:u64, h:u64\tkind=host size=w*h*4 async\n"
      "cuA\tcuA\tinit\tinit\tfull\n"
      "cuC\tcuC\tinit\tinit\tfull\tx:in.sizes, y:in.kernel_node@x+16, z:u32\n"
      "cuD\tcuD\tinit\tinit\tfull\tx:out.comm[n], n:i32, d:in.devices[n]\n";
  Table table{rows};
  table.meanings =
      "memory\talloc\tmemory\tcounted=allocations memory=alloc one_device\n"
      "memory\t*\tmemory\ninit\t*\tsetup\ttally\nother\t*\tother\n";
  auto made = generate({table}).front();
  CHECK(made.message.empty());
  REQUIRE(made.status == 0);
  CHECK(made.table.find("{.work = Work::memory, .counted = CountedAs::allocations, "
                        ".memory = MemoryEffect::alloc, .one_device = true},") !=
        std::string::npos);
  CHECK(made.table.find("{}, ApiId::in0, 0, true, MEANINGS[3], {}}") !=
        std::string::npos);  // cuInit's
  CHECK(made.table.find("RESULTS_in0[] = {\n    {0, \"SUCCESS\"},\n};") != std::string::npos);
  CHECK(made.table.find("\"cuA\"") < made.table.find("\"cuB\""));
  CHECK(made.table.find("{SizeRule::Kind::product, 2, 3, 4}") != std::string::npos);
  CHECK(made.table.find("Type::memory, Op::alloc, MemoryKind::host") != std::string::npos);
  CHECK(made.words.find(
            "enum class Type : std::uint8_t {\n  none,\n  init,\n  memory,\n  other,\n};") !=
        std::string::npos);
  CHECK(made.table.find("{\"f\", Role::f32, false, Struct::none, WORD(-1, -1)}") !=
        std::string::npos);
  CHECK(made.table.find(
            "{\"y\", Role::in_struct, false, Struct::kernel_node, WORD(-1, -1), 0, 16}") !=
        std::string::npos);
  CHECK(made.table.find("{\"x\", Role::comm, true, Struct::none, WORD(0, 0), -1, 0, false, 1}") !=
        std::string::npos);
  CHECK(made.table.find("Struct::devices, WORD(2, 2), -1, 0, false, 1}") != std::string::npos);
  CHECK(made.table.find("{\"z\", Role::u32, false, Struct::none, WORD(1, 1)}") !=
        std::string::npos);
  CHECK(made.table.find("{\"w\", Role::u64, false, Struct::none, WORD(1, 1)}") !=
        std::string::npos);
}

TEST_CASE("The generator refuses a wrong table and says where it is wrong") {
  struct Case {
    const char* rows;
    const char* message;
  };
  const std::string good = "cuA\tcuA\tinit\tinit\tfull\tx:u32\t\n";
  const std::vector<Case> cases = {
      Case{"cuA\tcuA\tinit\tinit\tfull\n", ":4: 'cuA' stands twice"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u33\n", ":4: unknown role 'u33'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx\n", ":4: unknown role ''"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:out.str\n", ":4: unknown role 'out.str'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:in.nothing\n", ":4: unknown role 'in.nothing'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\ta:in.sizes@b+8, b:in.sizes\n",
           ":4: 'in.sizes@b+8': no str"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tb:u64, a:in.sizes@b+8\n", ":4: 'in.sizes@b+8': no str"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tb:in.sizes, a:in.sizes@b+4\n", "at a multiple of 8"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:out.u64[n], n:u32\n", ":4: 'out.u64[n]': in brackets"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:in.devices, n:u32\n", ":4: 'in.devices': in brackets"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:out.comm[m], n:u32\n", ":4: 'out.comm[m]': no such"},
      Case{"cuB\tcuB\tinit\tinit\tsome\n", ":4: unknown profile 'some'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tsize=y\n", ":4: size: no argument 'y'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tsize=x*x*x*2\n", ":4: size: cannot read"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tsize=2\n", ":4: size: cannot read '2'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tsize=x*999\n", ":4: size: cannot read 'x*999'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tcolour=red\n", ":4: unknown attribute 'colour'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tnames=guess\n", ":4: unknown names 'guess'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tgraph=cut\n", ":4: unknown graph 'cut'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tmemory=eat\n", ":4: unknown memory 'eat'"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\tnode=set\n", ":4: node: the function does nothing"},
      Case{"cuB\tcuB\tinit\tquit\tfull\ncuC\tcuC\tmind\tmind\tfull\n", ": no row for mind mind"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32, x:u32\n", ":4: two arguments 'x'"},
      Case{"cuB\tcuB\tinit\n", ":4: too few columns"},
      Case{"cuB\tcuB\tinit\tinit\tfull\tx:u32\t\tmore\n", ":4: too many columns"},
  };
  std::vector<Table> tables;
  for (const Case& wrong : cases) tables.push_back({good + wrong.rows});
  tables.push_back({"", "symbol\tname\n"});
  auto generated = generate(tables);
  for (std::size_t i = 0; i < cases.size(); i++) {
    const Case& wrong = cases[i];
    const Generated& made = generated[i];
    CAPTURE(wrong.rows, made.message);
    CHECK(made.status == 1);
    CHECK(made.message.find(wrong.message) != std::string::npos);
    CHECK(made.message.find("Traceback") == std::string::npos);
    CHECK(made.table.empty());
  }
  const Generated& headless = generated.back();
  CHECK(headless.status == 1);
  CHECK(headless.message.find(":2: columns must be") != std::string::npos);
}

TEST_CASE("The generator refuses meanings that are wrong, missing or of no function") {
  struct Case {
    const char* rows;
    const char* message;
  };
  const std::vector<Case> cases = {
      Case{"init\t*\tsetup\n", ": no row for other other"},
      Case{"init\t*\tsetup\nother\t*\tother\ninit\tquit\tsetup\n", ": no function is of init quit"},
      Case{"init\t*\tsetup\nother\t*\tother\nmind\t*\tsetup\n", ": no function is of mind *"},
      Case{"init\t*\tsetup\ninit\t*\tsetup\n", ":3: 'init *' stands twice"},
      Case{"init\t*\tplay\n", ":2: unknown work 'play'"},
      Case{"init\t*\tsetup\tquickly\n", ":2: unknown fact 'quickly='"},
      Case{"init\t*\tsetup\tcounted=sheep\n", ":2: unknown fact 'counted=sheep'"},
      Case{"init\t*\tsetup\ttally=yes\n", ":2: unknown fact 'tally=yes'"},
      Case{"init\t*\n", ":2: a row has type, op and work"},
  };
  std::vector<Table> tables;
  for (const Case& wrong : cases)
    tables.push_back({.rows = "cuA\tcuA\tinit\tinit\tfull\n", .meanings = wrong.rows});
  auto generated = generate(tables);
  for (std::size_t i = 0; i < cases.size(); i++) {
    CAPTURE(cases[i].rows, generated[i].message);
    CHECK(generated[i].status == 1);
    CHECK(generated[i].message.find(cases[i].message) != std::string::npos);
    CHECK(generated[i].table.empty());
  }
}
