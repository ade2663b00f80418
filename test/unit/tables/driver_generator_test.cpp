// scripts/gen-driver-tables.py
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "generating.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"

namespace {

const std::filesystem::path OUR_TABLES =
    std::filesystem::path(TEST_DIR) / "../include/cudabpf/driver";

// Our tables with `line` added to one of them.
struct Changed {
  std::string table, line;
  bool alone = false;  // only `line` is in that table
};

// What scripts/gen-driver-tables.py says about them: its exit status, and its message with LINE for
// the number of that line.
struct GeneratedDriver {
  int status;
  std::string message;
  bool made;
};

std::vector<GeneratedDriver> generate_driver(const std::vector<Changed>& changes) {
  TemporaryFolder folder;
  auto in = [&](std::size_t i) { return folder.path() / ("driver" + std::to_string(i)); };
  auto out = [&](std::size_t i) { return folder.path() / ("out" + std::to_string(i)); };
  std::vector<std::vector<std::string>> runs;
  std::vector<std::string> numbers;
  for (const Changed& change : changes) {
    std::size_t i = runs.size();
    std::filesystem::copy(OUR_TABLES, in(i));
    auto changed = in(i) / (change.table + ".tsv");
    std::string text = (change.alone ? "" : file_text(changed)) + change.line + "\n";
    std::ofstream(changed) << text;
    numbers.push_back(":" + std::to_string(std::count(text.begin(), text.end(), '\n')) + ":");
    runs.push_back({in(i), out(i)});
  }
  std::vector<GeneratedDriver> generated;
  for (auto& [status, message] : run_generator("gen-driver-tables.py", runs)) {
    std::size_t i = generated.size();
    if (auto at = message.find(numbers[i]); at != message.npos)
      message.replace(at, numbers[i].size(), ":LINE:");
    generated.push_back({status, message, std::filesystem::exists(out(i))});
  }
  return generated;
}

}  // namespace

TEST_CASE("The generator of the driver's tables takes a good row") {
  for (const GeneratedDriver& made : generate_driver(
           {{"controls", "0x12340001\tNV1234_CTRL_CMD_NEW\tquery\t620.1\t-\t-\tdepth@4:2"},
            {"controls", "0x00000107\tNV0000_CTRL_CMD_BETWEEN\tother\t550.40.07\t560\tyes\t-"},
            {"escapes", "0x2b\tNV_ESC_RM_ALLOC\tother\t-\t-\t64\t-\t0\t4\tout.8\t-\t12\t-\t-\t60"},
            {"xid", "999\tthe GPU is tired"}})) {
    CHECK(made.message.empty());
    CHECK(made.status == 0);
    CHECK(made.made);
  }
}

TEST_CASE("The generator refuses a wrong table of the driver's and says where it is wrong") {
  struct Case {
    const char* table;
    const char* line;
    const char* message;
  };
  const std::vector<Case> cases = {
      Case{"controls", "0xA\tX\tother\t-\t-\t-\t-", "number: '0xA' is no number"},
      Case{"controls", "0x\tX\tother\t-\t-\t-\t-", "number: '0x' is no number"},
      Case{"controls", "0x100000000\tX\tother\t-\t-\t-\t-", "is too large"},
      Case{"controls", "0xa\tX Y\tother\t-\t-\t-\t-", "'X Y' is no name"},
      Case{"controls", "0xa\tX\tsched\t-\t-\t-\t-", "unknown group 'sched'"},
      Case{"controls", "0xa\tX\tother\t5x\t-\t-\t-", "since: '5x' is no version"},
      Case{"controls", "0xa\tX\tother\t0.1\t-\t-\t-", "since: '0.1' is no version"},
      Case{"controls", "0xa\tX\tother\t-\t1.2.3.4\t-\t-", "until: '1.2.3.4' is no version"},
      Case{"controls", "0xa\tX\tother\t580.1\t580.1\t-\t-", "is not after since"},
      Case{"controls", "0xa\tX\tother\t-\t-\tno\t-", "firmware: 'no' is neither"},
      Case{"controls", "0xa\tX\tother\t-\t-\t-\tvalue", "value: cannot read 'value'"},
      Case{"controls", "0xa\tX\tother\t-\t-\t-\tv@0:3", "value: cannot read 'v@0:3'"},
      Case{"controls", "0xa\tX\tother\t-\t-\t-", "7 columns are needed"},
      Case{"controls", "0xa\tX\tother\t-\t-\t-\t", "none of them empty"},
      Case{"controls", "0x00000101\tX\tother\t600.1\t-\t-\t-",
           "overlaps 'NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION' in line "},
      Case{"classes", "0x0040\tX\tother\t600.1\t-\t-\t-", "overlaps 'NV01_MEMORY_LOCAL_USER'"},
      Case{"classes", "0xfe00\tX\tother\t-\t-\tout.8\t-", "size: cannot read 'out.8'"},
      Case{"classes", "0xfe00\tX\tother\t-\t-\t250\t-", "size: 250 lies outside the struct"},
      Case{"escapes", "256\tX\tother\t-\t-\t8\t-\t0\t-\t-\t-\t-\t-\t-\t-", "is too large"},
      Case{"escapes", "1\tX\tother\t-\t-\t8\t-\tout.0\t-\t-\t-\t-\t-\t-\t-",
           "client: cannot read 'out.0'"},
      Case{"escapes", "1\tX\tother\t-\t-\t8\t-\t0\t-\t-\t-\t-\t-\t-\t4+1",
           "status: cannot read '4+1'"},
      Case{"escapes", "1\tX\tother\t-\t-\t8\t-\t-\t-\t-\t-\t-\t-\t-\t5",
           "status: 5 lies outside the struct"},
      Case{"escapes", "1\tX\tother\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t-\t0",
           "status: 0 lies outside the struct"},
      Case{"escapes", "1\tX\tother\t-\t-\t8\t8=1\t-\t-\t-\t-\t-\t-\t-\t-",
           "when: cannot read '8=1'"},
      Case{"escapes", "0x2a\tX\tother\t-\t-\t64\t-\t-\t-\t-\t-\t-\t-\t-\t-",
           "overlaps 'NV_ESC_RM_CONTROL' in line "},
      Case{"escapes", "0x2a\tNV_ESC_RM_CONTROL\tother\t-\t-\t32\t-\t-\t-\t-\t-\t-\t-\t-\t-",
           "two layouts of one struct"},
      Case{"uvm", "34\tUVM_FREE\tmemory\t580.1\t-\t24\t-\t-\t-\t0\t16",
           "two layouts of one struct"},
      Case{"status", "0\tNV_FINE\t", "2 columns are needed"},
      Case{"status", "0\tNV_FINE", "'0' stands twice"},
      Case{"status", "0x7000\tfine", "cannot read 'fine'"},
      Case{"xid", "79\tgone", "'79' stands twice"},
      Case{"xid", "999\ta \"quote\"", "cannot read 'a \"quote\"'"},
  };
  std::vector<Changed> changes;
  for (const Case& wrong : cases) changes.push_back({wrong.table, wrong.line});
  changes.push_back({"xid", "number\tname", true});
  changes.push_back({"xid", "# nothing", true});
  auto generated = generate_driver(changes);
  for (std::size_t i = 0; i < cases.size(); i++) {
    const Case& wrong = cases[i];
    const GeneratedDriver& made = generated[i];
    CAPTURE(wrong.line, made.message);
    CHECK(made.status == 1);
    CHECK(made.message.find(std::string(wrong.table) + ".tsv:LINE: ") != std::string::npos);
    CHECK(made.message.find(wrong.message) != std::string::npos);
    CHECK(made.message.find("Traceback") == std::string::npos);
    CHECK_FALSE(made.made);
  }
  const GeneratedDriver &headless = generated[cases.size()], &empty = generated.back();
  CHECK(headless.status == 1);
  CHECK(headless.message.find("xid.tsv:LINE: columns must be") != std::string::npos);
  CHECK(empty.message.find("xid.tsv: no rows") != std::string::npos);
}
