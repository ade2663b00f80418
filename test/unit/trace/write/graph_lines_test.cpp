// What a trace and the summary of a run say of graphs.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"
#include "trace/write/event_lines.hpp"

using namespace cudabpf;
using Json = nlohmann::json;

namespace {

// Three runs of a kernel with a name and one of a kernel without, a copy, and a body.
struct Content : GraphContent {
  Content() {
    number = 7;
    pid = 4242;
    nodes = 5;
    kernels = 4;
    GraphOperation work, unnamed, copy;
    work.what = unnamed.what = NodeWork::kernel;
    copy.what = NodeWork::copy;
    copy.size = 4096;
    unnamed.handle = 0x55;
    work.has_dims = true;
    work.grid = {8, 2, 1};
    work.block = {32, 1, 1};
    work.shared = 64;
    work.kernel = &gemm;
    operations.emplace_back(work, 3);
    work.conditional = true;
    operations.emplace_back(work, 1);
    operations.emplace_back(unnamed, 1);
    operations.emplace_back(copy, 1);
  }
  KernelName gemm = kernel_named("gemm<float>(int)", "gemm");
};

struct GraphLaunch : SampleCall {
  explicit GraphLaunch(const GraphContent* content) : SampleCall("cuGraphLaunch", {0x910, 0x70}) {
    graph = content;
  }
};

Json line_with_graph(const Call& call) {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  sink->call(call);
  sink->end({});
  auto lines = trace_lines(file_text(path));
  return lines[lines.size() - 2];
}

}  // namespace

TEST_CASE("A line says what a graph holds") {
  Content content;
  content.more = 2;
  Json expected = Json::parse(R"json({"type":"graph","op":"content","ts":900,"pid":4242,"graph":7,
    "nodes":5,"kernels":4,"more":2,"content":[
    {"op":"kernel","kernel":"gemm<float>(int)","grid":[8,2,1],"block":[32,1,1],"shared":64,"count":3},
    {"op":"kernel","kernel":"gemm<float>(int)","grid":[8,2,1],"block":[32,1,1],"shared":64,"count":1,
     "conditional":true},
    {"op":"kernel","handle":"0x55","count":1},
    {"op":"copy","size":4096,"count":1}]})json");
  CHECK(Json::parse(graph_line(content, 900)) == expected);
}

TEST_CASE("A line of a graph stays short enough to be read, and says what it leaves out") {
  Content content;
  content.gemm.full = std::string(100'000, 'k');
  for (int i = 0; i < 100; i++) content.operations.push_back(content.operations[0]);
  std::string line = graph_line(content, 900);
  CHECK(line.size() < 2'000'000);
  Json json = Json::parse(line);
  std::uint64_t listed = 0, all = 0;
  for (const auto& work : json["content"])
    listed += work.value("conditional", false) ? 0 : std::uint64_t{work["count"]};
  for (const auto& [work, count] : content.operations) all += work.conditional ? 0 : count;
  CHECK(listed + std::uint64_t{json["more"]} == all);
}

TEST_CASE("A launch says which graph it is, or why that is not known") {
  Content content;
  GraphLaunch launch(&content);
  Json line = line_with_graph(launch);
  CHECK(line["graph"] == 7);
  CHECK(line["nodes"] == 5);
  CHECK(line["kernels"] == 4);
  launch.graph = nullptr;
  launch.graph_unknown = GraphUnknown::before;
  line = line_with_graph(launch);
  CHECK(line["graph_unknown"] == "before");
  CHECK_FALSE(line.contains("graph"));
  launch.graph_unknown = GraphUnknown::none;
  launch.captured = true;
  line = line_with_graph(launch);
  CHECK(line["captured"] == true);
  CHECK_FALSE(line.contains("graph_unknown"));
}

TEST_CASE("Each file says what a graph holds before it is launched there, once") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_size = 16 << 10;
  auto sink = JsonlSink::open(options);
  REQUIRE(sink);
  (*sink)->begin(session_now());
  Content content;
  GraphLaunch launch(&content);
  for (launch.id = 1; launch.id <= 200; launch.id++) {
    launch.ts = 1000 * launch.id;
    (*sink)->call(launch);
  }
  (*sink)->end({});
  unsigned files = (*sink)->written().files;
  REQUIRE(files > 2);
  for (unsigned part = 1; part <= files; part++) {
    auto path = rotated_path(folder.path() / "t.jsonl", part);
    CAPTURE(part);
    CHECK(std::filesystem::file_size(path) <= options.rotate_size);
    auto lines = trace_lines(file_text(path));
    REQUIRE(lines.size() >= 3);
    CHECK(lines[1]["op"] == "content");
    CHECK(lines[1]["ts"] == lines[2]["ts"]);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const Json& line) {
            return line["type"] == "graph" && !line.contains("id");
          }) == 1);
  }
}
