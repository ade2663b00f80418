// How a GPU's busy time divides where there are collectives.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "analyze/gaps/gpus_at_work.hpp"
#include "support/measured_gpus.hpp"
#include "support/random_numbers.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using namespace samples;
using Catch::Matchers::ContainsSubstring;

namespace {
constexpr std::string_view ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)";
}  // namespace

TEST_CASE("A GPU that spins in a collective is busy with nothing of its own") {
  SampleProgram program;  // rank 0 waits in the collective's kernel for 10 ms until rank 1 comes
  for (std::uint32_t pid : {7U, 8U}) {
    program.pid = program.tid = pid;
    program.launch("gemm");
    program.launch(ALL_REDUCE);
  }
  program.pid = 7;
  ran(program, 1, 10 * US, 40 * US, "gemm");
  ran(program, 2, 50 * US, 10'300 * US, ALL_REDUCE);
  program.pid = 8;
  ran(program, 3, 10'010 * US, 40 * US, "gemm");
  ran(program, 4, 10'250 * US, 100 * US, ALL_REDUCE);
  Measured measured(program);
  REQUIRE(measured.times.gpus().size() == 2);
  WorkTime waiting = measured.times.gpus()[0].work_time(),
           late = measured.times.gpus()[1].work_time();
  CHECK(waiting.busy == 10'340 * US);
  CHECK(waiting.kernels == 10'340 * US);
  CHECK(waiting.own_kernels == 40 * US);
  CHECK(waiting.communication == 10'300 * US);
  CHECK(waiting.exposed == 10'300 * US);
  CHECK(waiting.hidden() == 0);
  CHECK(waiting.compute() == 40 * US);
  CHECK(late.exposed == 100 * US);
  CHECK(late.compute() == 40 * US);
}

TEST_CASE("What runs beside a collective hides it: kernels, copies and fills, each moment once") {
  SampleProgram program;
  program.launch("gemm");
  ran(program, 1, 100, 100, ALL_REDUCE);                  // 100 to 200
  ran(program, 1, 120, 20, "gemm", R"(,"queue":2)");      // hides 20
  ran(program, 1, 130, 20, "HtoD", R"(,"queue":3)");      // and 10 more
  ran(program, 1, 190, 30, "set", R"(,"queue":2)");       // and 10 more
  ran(program, 1, 195, 15, ALL_REDUCE, R"(,"queue":4)");  // hidden from 200 on
  Measured measured(program);
  WorkTime work = measured.gpu().work_time();
  CHECK(work.busy == 120);
  CHECK(work.communication == 110);
  CHECK(work.hidden() == 30 + 10 + 10);
  CHECK(work.exposed == 60);
  CHECK(work.compute() == 60);
  CHECK(work.own_kernels == 20);
  CHECK(measured.gpu().busy.communication().count == 2);
  CHECK(measured.gpu().busy.communication().sum == 115);
  Json gpu = gpus_at_work_json(measured.times)["gpus"][0];
  CHECK(gpu["communication"]["exposed_us"] == 0.06);
  CHECK(gpu["communication"]["hidden_us"] == 0.05);
  CHECK(gpu["communication"]["exposed_share"] == 50.0);
  CHECK(gpu["compute_us"] == 0.06);
}

TEST_CASE("Any stretch is divided exactly, also where work follows work without a gap") {
  SampleProgram program;
  program.launch("gemm");
  ran(program, 1, 1000, 400, "gemm");
  ran(program, 1, 1400, 400, ALL_REDUCE);
  ran(program, 1, 1500, 100, "gemm", R"(,"queue":2)");
  ran(program, 1, 1800, 200, "gemm");
  Measured measured(program);
  const GpuCurve& curve = measured.gpu().curve;
  CHECK(curve.between(1000, 1400).exposed == 0);
  CHECK(curve.between(1000, 1400).own_kernels == 400);
  CHECK(curve.between(1390, 1450).exposed == 50);
  CHECK(curve.between(1400, 1600).hidden() == 100);
  CHECK(curve.between(1550, 1700).exposed == 100);
  CHECK(curve.between(1700, 1900).exposed == 100);
  GpuCurve::Share all = curve.between(0, 3000);
  CHECK(all.busy == 1000);
  CHECK(all.exposed == 300);
  CHECK(all.compute() == 700);
}

TEST_CASE("Kernels of collectives in graphs are known node by node, in whole graphs they are not") {
  SampleProgram program;
  program.line(fmt::format(
      R"({{"type":"graph","op":"content","ts":1,"pid":7,"graph":5,"nodes":2,"kernels":2,"content":[{{"op":"kernel","kernel":"gemm","count":1}},{{"op":"kernel","kernel":"{}","count":1}}]}})",
      ALL_REDUCE));
  program.graph_content(6, 1, "gemm");
  program.launch_graph(R"("graph":5)");
  program.launch_graph(R"("graph":6)");
  SECTION("node by node") {
    ran(program, 1, 100, 50, "gemm", R"(,"node":1)");
    ran(program, 1, 150, 30, ALL_REDUCE, R"(,"node":2)");
    Measured measured(program);
    CHECK(measured.gpu().work_time().exposed == 30);
    CHECK(measured.gpu().graphs_with_collectives == 0);
  }
  SECTION("as wholes") {
    ran(program, 1, 100, 80, "graph");
    ran(program, 2, 200, 80, "graph");
    Measured measured(program);
    CHECK(measured.gpu().work_time().communication == 0);
    CHECK(measured.gpu().graphs_with_collectives == 1);
    CHECK(gpus_at_work_json(measured.times)["gpus"][0]["communication"]["in_whole_graphs"] == 1);
    CHECK_THAT(page_text([&](Page& page) { add_gpu_notes(page, measured.times); }),
               ContainsSubstring("not known how long collectives took in 1 launch of a graph"));
  }
}

TEST_CASE("A copy is communication if a collective has made it") {
  SampleProgram program;
  // The line of a call comes after those of the calls that it makes.
  program.call("transfer", "DtoD", "cuMemcpyDtoDAsync", 10,
               R"(,"async":true,"stream":"0x0","within":2)");
  program.call("collective", "all_gather", "ncclAllGather", 10, R"(,"library":"nccl","layer":1)");
  program.call("transfer", "DtoD", "cuMemcpyDtoDAsync", 10, R"(,"async":true,"stream":"0x0")");
  ran(program, 1, 2000, 100, "DtoD");
  ran(program, 3, 2050, 100, "DtoD", R"(,"queue":2)");
  Measured measured(program);
  WorkTime work = measured.gpu().work_time();
  CHECK(work.communication == 100);
  CHECK(work.exposed == 50);
  CHECK(work.compute() == 100);
}

namespace {

// For which collectives GPUs did something, in the order of these lines: "all_reduce 64 of 3 #5".
std::vector<std::string> asked_in(const SampleProgram& program) {
  std::vector<std::string> asked;
  LineParser parser;
  std::string header = R"({"type":"trace","gpu_timing":"nodes"})"
                       "\n";
  auto seen = each_line(parser, header + program.text(), [&](const Line& line) {
    if (line.kind != LineKind::gpu_operation) return;
    const AskedCollective& of = line.collective;
    asked.push_back(
        of.op
            ? fmt::format("{} {} of {} #{}{}", parser.names().text(of.op), of.size, of.communicator,
                          of.seq, of.together > 1 ? fmt::format(", {} together", of.together) : "")
            : "");
  });
  return asked;
}

constexpr std::string_view LAUNCH_WITHIN =
    R"(,"stream":"0x0","async":true,"kernel":"ncclDevKernel_AllReduce","within":{})";

}  // namespace

TEST_CASE(
    "A kernel is for the collective that launched it, and a group's for all of its collectives") {
  SampleProgram program;
  auto collective = [&](int seq, const std::string& more = "") {
    program.call("collective", "all_reduce", "ncclAllReduce", 10,
                 fmt::format(R"(,"library":"nccl","layer":1,"size":64,"communicator":3,"seq":{}{})",
                             seq, more));
  };
  program.call("kernel", "launch", "cuLaunchKernelEx", 10, fmt::format(LAUNCH_WITHIN, 2));
  collective(5);
  collective(6, R"(,"call_group":9)");
  collective(7, R"(,"call_group":9)");
  program.call("kernel", "launch", "cuLaunchKernelEx", 10, fmt::format(LAUNCH_WITHIN, 6));
  program.call("group", "end", "ncclGroupEnd", 10, R"(,"library":"nccl","layer":1,"call_group":9)");
  program.call("kernel", "launch", "cuLaunchKernelEx", 10,
               R"(,"stream":"0x0","async":true,"kernel":"ncclDevKernel_AllReduce")");
  ran(program, 1, 5000, 10, ALL_REDUCE);
  ran(program, 5, 5100, 10, ALL_REDUCE);
  ran(program, 7, 5200, 10, ALL_REDUCE);
  ran(program, 1, 5300, 10, "gemm");
  CHECK(asked_in(program) == std::vector<std::string>{"all_reduce 64 of 3 #5",
                                                      "all_reduce 64 of 3 #6, 2 together", "", ""});
}

TEST_CASE("The division is that of a reference that looks at each moment") {
  std::mt19937 random(17);
  for (int round = 0; round < 50; round++) {
    constexpr std::size_t SPAN = 600;
    std::vector<bool> collective(SPAN + 50), other(SPAN + 50);
    SampleProgram program;
    program.launch("gemm");
    for (unsigned i = 1 + any(random, 30); i; i--) {
      std::uint64_t begin = any(random, SPAN), ns = any(random, 50);
      bool communicates = any(random, 2);
      for (std::uint64_t t = begin; t < begin + ns; t++)
        (communicates ? collective : other)[t] = true;
      ran(program, 1, begin, ns, communicates ? ALL_REDUCE : "gemm");
    }
    Measured measured(program);
    for (int stretch = 0; stretch < 10; stretch++) {
      std::uint64_t from = any(random, SPAN), to = from + any(random, 100);
      std::uint64_t busy = 0, exposed = 0, hidden = 0;
      for (std::uint64_t t = from; t < std::min<std::uint64_t>(to, collective.size()); t++) {
        busy += collective[t] || other[t];
        exposed += collective[t] && !other[t];
        hidden += collective[t] && other[t];
      }
      GpuCurve::Share share = measured.gpu().curve.between(from, to);
      CHECK(share.busy == busy);
      CHECK(share.exposed == exposed);
      CHECK(share.hidden() == hidden);
    }
  }
}
