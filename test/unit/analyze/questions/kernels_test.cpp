#include "analyze/questions/kernels.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Launched {
  int ts = 0;
  std::string name = "gemm(int)";
  int grid = 1;
  std::string stream = "0x0";
  std::string duration = "0.100";  // µs; empty: not known
  int pid = 1, tid = 1;
  std::string more = {};
};

// A launch of a kernel with this name.
Launched named(std::string name, int ts, std::string stream = "0x0") {
  return Launched{.ts = ts, .name = std::move(name), .stream = std::move(stream)};
}

std::string line_of(const Launched& launch) {
  static int id = 0;
  std::string line = R"({"id":)" + std::to_string(++id) +
                     R"(,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":)" +
                     std::to_string(launch.ts);
  if (!launch.duration.empty()) line += R"(,"duration_us":)" + launch.duration + R"(,"ret":0)";
  line += R"(,"pid":)" + std::to_string(launch.pid) + R"(,"tid":)" + std::to_string(launch.tid) +
          R"(,"stream":")" + launch.stream + "\"";
  if (!launch.name.empty()) line += R"(,"kernel":")" + launch.name + "\"";
  line += R"(,"grid":[)" + std::to_string(launch.grid) + R"(,1,1],"block":[32,1,1],"shared":0)" +
          launch.more;
  return line + "}\n";
}

std::string lines_of(const std::vector<Launched>& launches) {
  std::string lines;
  for (const Launched& launch : launches) lines += line_of(launch);
  return lines;
}

// The gap after each launch, of kernels that are launched once.
std::vector<std::uint64_t> gaps(const std::string& lines) {
  TraceText trace(lines);
  Kernels kernels(trace.names());
  trace.show(kernels);
  std::vector<std::uint64_t> gaps;
  auto all = kernels.figures(Kernels::By::configuration);
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.first < b.first; });
  gaps.reserve(all.size());
  for (const auto& of : all) gaps.push_back(of.gaps.count() ? of.gaps.total() : ~std::uint64_t{0});
  return gaps;
}

constexpr std::uint64_t NONE = ~std::uint64_t{0};
using Gaps = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("A kernel is its name and how it is launched") {
  TraceText trace(lines_of({{.ts = 100},
                            {.ts = 300, .duration = "0.300"},
                            {.ts = 900, .grid = 2},
                            {.ts = 2000, .name = "softmax(float*)"}}));
  Kernels kernels(trace.names());
  trace.show(kernels);

  auto all = kernels.figures(Kernels::By::configuration);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "gemm");
  CHECK(all[0].full == "gemm(int)");
  CHECK(all[0].count == 2);
  CHECK(all[0].launch.grid[0] == 1);
  CHECK(all[0].first == 100);
  CHECK(all[0].last == 300);
  CHECK(all[0].calls.total() == 400);
  CHECK(all[0].gaps.count() == 2);
  CHECK(all[0].gaps.total() == 100 + 300);
  CHECK(all[1].launch.grid[0] == 2);
  CHECK(all[1].gaps.total() == 1000);
  CHECK(all[2].kernel_class == KernelClass::normalisation);
  CHECK(all[2].gaps.count() == 0);

  auto by_name = kernels.figures(Kernels::By::name);
  REQUIRE(by_name.size() == 2);
  CHECK(by_name[0].count == 3);
  CHECK(by_name[0].configurations == 2);
  CHECK(by_name[0].last == 900);

  auto classes = kernels.classes();
  REQUIRE(classes.size() == 2);
  CHECK(classes[0].name == "matrix multiply");
  CHECK(classes[0].kernels == 1);
  CHECK(classes[0].configurations == 2);
  CHECK(classes[0].count == 3);
  CHECK(classes[0].calls.total() == 500);
}

TEST_CASE("A gap is from a launch's return to the next launch on its stream") {
  SECTION("other streams do not end it") {
    CHECK(gaps(lines_of({named("a", 0), named("b", 200, "0x7"), named("c", 500)})) ==
          Gaps{400, NONE, NONE});
  }
  SECTION("nor do other processes") {
    Launched other = named("b", 200);
    other.pid = 2;
    CHECK(gaps(lines_of({named("a", 0), other, named("c", 500)})) == Gaps{400, NONE, NONE});
  }
  SECTION("each thread has its own default stream, if it requests that") {
    Launched other = named("b", 200, "0x2");
    other.tid = 2;
    CHECK(gaps(lines_of({named("a", 0, "0x2"), other, named("c", 500, "0x2")})) ==
          Gaps{400, NONE, NONE});
  }
  SECTION("launches of two threads may overlap") {
    CHECK(gaps(lines_of({named("a", 0), named("b", 50)})) == Gaps{0, NONE});
  }
  SECTION("where the return is not known, there is none") {
    Launched open = named("b", 200);
    open.duration = "";
    CHECK(gaps(lines_of({named("a", 0), open, named("c", 500)})) == Gaps{100, NONE, NONE});
  }
  SECTION("what failed launched nothing") {
    Launched failed = named("b", 200);
    failed.more = R"(,"ret":1,"error":"CUDA_ERROR_INVALID_VALUE")";
    std::string line = line_of(failed);
    line.erase(line.find(R"("ret":0,)"), 8);
    CHECK(gaps(line_of(named("a", 0)) + line + line_of(named("c", 500))) == Gaps{400, NONE, NONE});
  }
  SECTION("the default stream is one by both of its names") {
    CHECK(gaps(lines_of({named("a", 0, "0x0"), named("b", 500, "0x1")})) == Gaps{400, NONE});
  }
}

TEST_CASE("A gap does not reach") {
  SECTION("across lost events") {
    std::string lost = R"({"type":"lost","reason":"ring_full_entry","severity":"lost","count":1})"
                       "\n";
    CHECK(gaps(line_of(named("a", 0)) + lost + line_of(named("c", 500))) == Gaps{NONE, NONE});
    std::string degraded =
        R"({"type":"lost","reason":"out_pointer","severity":"degraded","count":1})"
        "\n";
    CHECK(gaps(line_of(named("a", 0)) + degraded + line_of(named("c", 500))) == Gaps{400, NONE});
  }
  SECTION("from one process to the next that has its pid") {
    std::string exit = R"({"type":"process","op":"exit","ts":300,"pid":1,"exit_code":0})"
                       "\n";
    CHECK(gaps(line_of(named("a", 0)) + exit + line_of(named("c", 500))) == Gaps{NONE, NONE});
  }
  SECTION("from one stream to the next that has its handle") {
    auto destroy = [](int ret) {
      return R"({"id":9,"type":"stream","op":"destroy","name":"cuStreamDestroy","ts":300,)"
             R"("duration_us":0.001,"pid":1,"tid":1,"ret":)" +
             std::to_string(ret) + R"(,"stream":"0x7"})" + "\n";
    };
    std::string first = line_of(named("a", 0, "0x7")), second = line_of(named("b", 500, "0x7"));
    CHECK(gaps(first + destroy(0) + second) == Gaps{NONE, NONE});
    CHECK(gaps(first + destroy(400) + second) == Gaps{400, NONE});
  }
}

TEST_CASE("A launch inside of another is the same one") {
  TraceText trace(lines_of({{.ts = 110, .name = "a", .more = R"(,"parent":77)"},
                            {.ts = 100, .name = "b", .duration = "0.300"}}));
  Kernels kernels(trace.names());
  trace.show(kernels);
  CHECK(kernels.totals().launches == 1);
  CHECK(kernels.totals().nested == 1);
  auto all = kernels.figures(Kernels::By::name);
  REQUIRE(all.size() == 1);
  CHECK(all[0].name == "b");
}

TEST_CASE("What launches do not say is mentioned") {
  std::string graph = R"({"id":900,"type":"graph","op":"launch","name":"cuGraphLaunch","ts":5,)"
                      R"("duration_us":1.000,"pid":1,"tid":1,"ret":0,"stream":"0x0"})"
                      "\n";
  TraceText trace(
      graph +
      lines_of({{.ts = 10, .stream = "0x7", .more = R"(,"captured":true)"},
                {.ts = 11, .stream = "0x8"},
                {.ts = 12, .stream = "0x7"}}) +
      lines_of({{.ts = 20, .name = "", .more = R"(,"handle":"0xabc")"},
                {.ts = 30, .name = "", .duration = "", .more = R"(,"handle":"0xdef")"}}));
  Kernels kernels(trace.names());
  trace.show(kernels);
  const auto& totals = kernels.totals();
  CHECK(totals.launches == 5);
  CHECK(totals.graphs == 1);
  CHECK(totals.captured == 1);
  CHECK(totals.runs() == 4);
  CHECK(totals.unnamed == 2);
  CHECK(totals.without_return == 1);
  auto all = kernels.figures(Kernels::By::name);
  REQUIRE(all.size() == 3);
  CHECK(all[0].count == 3);
  CHECK(all[0].runs() == 2);
  CHECK(all[1].name == "(no name) 0xabc");
  CHECK(all[2].name == "(no name) 0xdef");

  std::string text =
      page_text([&](Page& page) { add_kernels(page, kernels, Kernels::By::configuration, 10); });
  CHECK_THAT(text, ContainsSubstring("What 1 launch of a graph ran is not known, and not counted: "
                                     "1 of which the trace says nothing."));
  CHECK_THAT(text, ContainsSubstring("1 launch was made while the stream was captured"));
  CHECK_THAT(text, ContainsSubstring("2 launches of kernels whose name is not known"));
  Json json = kernel_json(all[1], kernels);
  CHECK(json["kernel"].is_null());
  CHECK(json["handle"] == "0xabc");
  CHECK(json["share"] == 25);
}

TEST_CASE("A kernel as a line of JSON") {
  TraceText trace(lines_of({{.ts = 100, .grid = 4}, {.ts = 300, .grid = 4}}));
  Kernels kernels(trace.names());
  trace.show(kernels);
  Json json = kernel_json(kernels.figures(Kernels::By::configuration)[0], kernels);
  CHECK(
      json.dump() ==
      R"~({"kernel":"gemm(int)","class":"matrix multiply","grid":[4,1,1],"block":[32,1,1],)~"
      R"~("shared":0,"count":2,"in_graphs":0,"runs":2,"share":100.0,"failed":0,"first_ts":100,"last_ts":300,)~"
      R"~("call":{"count":2,"total_us":0.2,"p50_us":0.1,"p99_us":0.1,"max_us":0.1},)~"
      R"~("gap_after":{"count":1,"total_us":0.1,"p50_us":0.1,"p99_us":0.1,"max_us":0.1}})~");
}

TEST_CASE("A trace without launches") {
  TraceText trace("");
  Kernels kernels(trace.names());
  trace.show(kernels);
  CHECK(page_text([&](Page& page) { add_kernels(page, kernels, Kernels::By::name, 10); }) ==
        "No kernel was launched.\n");
  CHECK(kernels_json(kernels, Kernels::By::name)["kernels"].empty());
}
