#include "analyze/not_recorded.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/analysis.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr const char* CALL =
    R"({"id":1,"type":"init","name":"cuInit","ts":5,"duration_us":0.005,"pid":7,"tid":7})";

TraceFacts facts_lacking(std::string header_fields, std::initializer_list<std::string> lines) {
  TemporaryFolder folder;
  std::string text = R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0")" +
                     std::move(header_fields) + "}\n";
  for (const std::string& line : lines) text += line + "\n";
  text += R"({"type":"end","ts":900,"duration_ns":900,"calls":1})"
          "\n";
  auto reader = TraceReader::open({folder.write("t.jsonl", text)});
  REQUIRE(reader);
  REQUIRE(analyze::analyze(**reader, {}));
  return (*reader)->facts();
}

std::string lacking_page(const TraceFacts& facts) {
  Page page(Terminal{.is_terminal = false, .color = false, .width = 60, .height = 0, .utf8 = true});
  add_facts(page, facts);
  return page.take();
}

std::string gpu_times_line(int pid, const char* rest) {
  return R"({"type":"gpu","op":"times","ts":5,"pid":)" + std::to_string(pid) + "," + rest + "}";
}

}  // namespace

TEST_CASE("GPU times that are not reported are missed where they were wanted") {
  constexpr const char* WANTED = R"(,"gpu_timing":"nodes")";
  SECTION("with the reason, and for which processes") {
    auto facts = facts_lacking(WANTED, {gpu_times_line(7, R"("why":"no libcupti")"),
                                        gpu_times_line(8, R"("cupti":"13.0.1","graphs":"nodes")"),
                                        gpu_times_line(9, R"("why":"no libcupti")"),
                                        gpu_times_line(10, R"("why":"it is old")"), CALL});
    CHECK(lacking_page(facts) ==
          "no GPU times\n"
          "  Process 10: it is old.\n"
          "  Process 7 and 1 more: no libcupti.\n");
    CHECK(facts_json(facts)["not_recorded"].dump() ==
          R"({"gpu_times":[{"why":"it is old","pid":10,"processes":1},)"
          R"({"why":"no libcupti","pid":7,"processes":2}],"functions":[]})");
  }
  SECTION("also if no process says anything") {
    CHECK(lacking_page(facts_lacking(WANTED, {CALL})) ==
          "no GPU times\n"
          "  All processes: no process reported any: libcuda loads the\n"
          "  library that does so in cuInit, if an environment variable\n"
          "  names it.\n");
    CHECK(lacking_page(facts_lacking(WANTED, {})).empty());  // there was nothing to report
  }
  SECTION("and only there") {
    CHECK(lacking_page(facts_lacking("", {CALL})).empty());
    auto all =
        facts_lacking(WANTED, {gpu_times_line(7, R"("cupti":"13.0.1","graphs":"nodes")"), CALL});
    CHECK(lacking_page(all).empty());
    CHECK(!facts_json(all).contains("not_recorded"));
  }
  SECTION("no reason is none") {
    TraceFacts facts = facts_lacking(
        WANTED, {gpu_times_line(7, R"("why":5)"), gpu_times_line(7, R"("why":"")"), CALL});
    CHECK(lacking_page(facts).empty());
  }
}

TEST_CASE("Functions that could not be patched are missed") {
  auto facts = facts_lacking(
      R"json(,"left_out":["waits"])json",
      {R"json({"type":"library","ts":1,"path":"/l","device":1,"inode":1,"functions":5,"skipped":0,)json"
       R"json("unknown":0,"left_out":3,"unpatched":["cuLaunchKernel (it is too short)",)json"
       R"json("cuMemGetAttribute (it is too short)",5]})json",
       R"json({"type":"library","ts":2,"path":"/m","device":1,"inode":2,"functions":5,"skipped":0,)json"
       R"json("unknown":0,"left_out":1,"unpatched":["cuLaunchKernel (it is too short)"]})json",
       CALL});
  CHECK(facts.leaves_out("launches"));
  CHECK(facts.leaves_out("waits"));
  CHECK(!facts.leaves_out("copies"));
  CHECK(
      lacking_page(facts).ends_with("\n\nfunctions that could not be recorded\n"
                                    "  cuLaunchKernel (it is too short)\n"
                                    "  cuMemGetAttribute; --json says why\n"));
  CHECK(facts_json(facts)["not_recorded"]["functions"].dump() ==
        R"json(["cuLaunchKernel (it is too short)","cuMemGetAttribute (it is too short)"])json");
}

TEST_CASE("Every answer says that GPU times are of windows, or that none was met") {
  const char* header =
      R"(,"gpu_timing":"nodes","gpu_window":{"window_ns":500000000,"period_ns":10000000000})";
  std::string times = gpu_times_line(7, R"("cupti":"13.0.1","graphs":"nodes")");
  TraceFacts none = facts_lacking(header, {CALL, times});
  CHECK(none.not_recorded.why_no_gpu_times(1) ==
        "the trace ended before a window of 500 ms in each 10.0 s began");
  CHECK(lacking_page(none).find("no GPU times") != std::string::npos);
  std::string window = R"({"type":"gpu","op":"window","ts":5,"duration_us":500000,"pid":7})";
  TraceFacts some = facts_lacking(header, {CALL, times, window, window});
  CHECK(some.not_recorded.why_no_gpu_times(1).empty());
  CHECK(lacking_page(some).find("Kernels were recorded for 1.00 s in 2 windows") !=
        std::string::npos);
  auto json = some.not_recorded.json(1)["gpu_windows"];
  CHECK(json["count"] == 2);
  CHECK(json["sum_ns"] == 1'000'000'000);
}

TEST_CASE("Lines of Python that a process does not have are missed, with the reason") {
  auto facts = facts_lacking(
      R"(,"python":true)",
      {R"({"type":"python","ts":5,"pid":7,"version":"3.11.2"})",
       R"({"type":"python","ts":5,"pid":8,"why":"Python 3.9.2: its version is older than 3.11"})",
       CALL});
  CHECK(lacking_page(facts) ==
        "no lines of Python\n"
        "  Process 8: Python 3.9.2: its version is older than 3.11.\n");
  CHECK(facts.not_recorded.json(1)["python_lines"][0]["pid"] == 8);
}
