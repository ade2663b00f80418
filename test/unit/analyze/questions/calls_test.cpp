#include "analyze/questions/calls.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

const std::string TRACE =
    R"({"id":1,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":10,"duration_us":2.000,"pid":7,"tid":7,"ret":0}
{"id":2,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":20,"duration_us":4.000,"pid":7,"tid":8,"ret":0,"size":9}
{"id":3,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":30,"duration_us":8.000,"pid":8,"tid":8,"ret":2,"error":"CUDA_ERROR_OUT_OF_MEMORY","size":9}
{"id":4,"type":"memory","op":"alloc","name":"cuMemAlloc","ts":40,"pid":8,"tid":8,"size":9,"unfinished":true}
)";

std::string page_of(unsigned width, const std::vector<Calls::Group>& groups) {
  Terminal terminal;
  terminal.width = width;
  Page page(terminal, 160);
  add_calls(page, groups, 40);
  return page.take();
}

std::vector<Calls::Group> groups_of(Calls::By by) {
  LineParser parser;
  Calls calls(parser.names(), by);
  each_line(parser, TRACE, [&](const Line& line) { calls.line(line); });
  return calls.groups();
}

}  // namespace

TEST_CASE("Calls of each function, the longest first") {
  Json json = calls_json(groups_of(Calls::By::function), Calls::By::function);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["name"] == "cuMemAlloc");
  CHECK(json[0]["count"] == 3);
  CHECK(json[0]["errors"] == 1);
  CHECK(json[0]["timed"] == 2);  // one has not returned
  CHECK(json[0]["total_us"] == 12);
  CHECK(json[0]["mean_us"] == 6);
  CHECK(json[0]["max_us"] == 8);
  CHECK(json[1]["name"] == "cuCtxSynchronize");
  CHECK(json[1]["count"] == 1);
}

TEST_CASE("Calls apart for each process, and each thread of it") {
  Json processes = calls_json(groups_of(Calls::By::pid), Calls::By::pid);
  REQUIRE(processes.size() == 2);
  CHECK(processes[0]["group"] == "process 8");
  CHECK(processes[0]["total_us"] == 8);
  CHECK(processes[1]["group"] == "process 7");
  CHECK(processes[1]["count"] == 2);
  CHECK(processes[1]["functions"].size() == 2);
  CHECK(groups_of(Calls::By::tid).size() == 3);  // two processes have a thread 8
}

TEST_CASE("Calls of more functions than any driver has are counted together") {
  LineParser parser;
  Calls calls(parser.names(), Calls::By::pid);
  std::string text;
  constexpr int FUNCTIONS = 17'000, APART = 1 << 14;
  for (int i = 0; i < FUNCTIONS; i++) {
    std::string pid = std::to_string(1 + i % 2);
    text += R"({"id":)" + std::to_string(i + 1) + R"(,"name":"f)" + std::to_string(i) +
            R"(","ts":1,"duration_us":1.000,"pid":)" + pid + "}\n";
  }
  each_line(parser, text, [&](const Line& line) { calls.line(line); });
  auto groups = calls.groups();
  REQUIRE(groups.size() == 2);
  for (const auto& group : groups) {
    CHECK(group.all.count == FUNCTIONS / 2);
    CHECK(group.functions.size() == APART / 2 + 1);
    CHECK(group.functions[0].name == "(others)");
    CHECK(group.functions[0].count == (FUNCTIONS - APART) / 2);
  }
}

TEST_CASE("The container is not known for more processes than a machine has") {
  LineParser parser;
  Calls calls(parser.names(), Calls::By::container);
  std::string text;
  constexpr int PROCESSES = Processes::MAX + 1;
  for (int pid = 1; pid <= PROCESSES; pid++)
    text += R"({"type":"process","op":"start","ts":1,"pid":)" + std::to_string(pid) +
            R"(,"container":{"runtime":"docker","id":"8f2b"}})" + "\n";
  for (int pid : {1, PROCESSES})
    text += R"({"id":1,"name":"f","ts":1,"duration_us":1.000,"pid":)" + std::to_string(pid) + "}\n";
  each_line(parser, text, [&](const Line& line) { calls.line(line); });
  auto groups = calls.groups();
  REQUIRE(groups.size() == 2);
  std::set<std::string> names = {groups[0].name, groups[1].name};
  CHECK(names == std::set<std::string>{"docker 8f2b", "(not known)"});
}

TEST_CASE("A table of calls has as many columns as fit on the terminal") {
  auto groups = groups_of(Calls::By::function);
  for (unsigned width = 0; width < 170; width++) {
    std::istringstream page(page_of(width, groups));
    for (std::string line; std::getline(page, line);) {
      CAPTURE(width, line);
      auto shown =
          std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
      CHECK(shown <= std::max(width, 80U));
    }
  }
  using Words = std::vector<std::string>;
  auto heading = [&](unsigned width) {
    std::istringstream page(page_of(width, groups));
    std::string line;
    std::getline(page, line);
    std::istringstream words(line);
    return Words(std::istream_iterator<std::string>(words), {});
  };
  CHECK(heading(80) == Words{"calls", "count", "total", "mean", "p50", "p99", "max", "errors"});
  CHECK(heading(160) ==
        Words{"calls", "count", "total", "mean", "p50", "p95", "p99", "max", "errors"});
}

TEST_CASE("Any number may be a stream's handle") {
  auto launch = [](const std::string& more) {
    return R"({"id":1,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1,"duration_us":1.000,)"
           R"("pid":7,"tid":7)" +
           more + "}\n";
  };
  LineParser parser;
  Calls calls(parser.names(), Calls::By::stream);
  each_line(parser,
            launch("") + launch(R"(,"stream":"0x0")") + launch(R"(,"stream":"0xffffffffffffffff")"),
            [&](const Line& line) { calls.line(line); });
  std::vector<std::string> names;
  for (const auto& group : calls.groups()) names.push_back(group.name);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"(no stream)", "stream 0x0 of process 7",
                                          "stream 0xffffffffffffffff of process 7"});
}

TEST_CASE("Each process numbers its own devices") {
  auto launch = [](int pid, const std::string& more) {
    return R"({"id":1,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1,"duration_us":1.000,)"
           R"("tid":7,"pid":)" +
           std::to_string(pid) + more + "}\n";
  };
  LineParser parser;
  Calls calls(parser.names(), Calls::By::device);
  each_line(parser,
            launch(7, "") + launch(7, R"(,"device":0)") + launch(7, R"(,"device":1)") +
                launch(8, R"(,"device":0)") + launch(8, R"(,"device":0)"),
            [&](const Line& line) { calls.line(line); });
  std::map<std::string, std::uint64_t> counts;
  for (const auto& group : calls.groups()) counts[group.name] = group.all.count;
  CHECK(counts == std::map<std::string, std::uint64_t>{{"(device not known)", 1},
                                                       {"device 0 of process 7", 1},
                                                       {"device 1 of process 7", 1},
                                                       {"device 0 of process 8", 2}});
}
