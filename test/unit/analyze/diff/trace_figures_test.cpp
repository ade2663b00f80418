#include "analyze/diff/trace_figures.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/analyzing.hpp"
#include "support/graph_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr const char* END = "{\"type\":\"end\",\"ts\":9000000,\"duration_ns\":9000000}\n";

TraceFigures figures(const Trace& trace, const std::vector<MeasurePart>& parts = {},
                     const std::string& header = "", const std::string& end = END) {
  TraceText text(trace.text, header, end);
  Measures measures(text.names());
  text.show(measures);
  return figures_of(measures, parts);
}

std::optional<std::uint64_t> value(const TraceFigures& figures, const char* measure,
                                   const char* part = "") {
  const auto* figure = figures.find({find_measure(measure), part});
  return figure ? std::optional(figure->value) : std::nullopt;
}

Trace launches() {
  Trace trace;
  std::string launch = R"("name":"cuLaunchKernel","kernel":"k","stream":"0x0")";
  trace.call("kernel", "launch", launch).call("kernel", "launch", launch);
  trace.call("kernel", "launch", launch + R"(,"parent":1)");  // a part of another
  trace.text += content_line(1, 5, 5, kernel_nodes("k", "3") + "," + kernel_nodes("other", "2"));
  trace.call("graph", "launch", R"("name":"cuGraphLaunch","stream":"0x0","graph":1)");
  trace.call("sync", "ctx", R"("name":"cuCtxSynchronize")");
  return trace;
}

// What makes a measure of this trace uncertain.
std::string doubt(const TraceFigures& figures, const char* measure) {
  const auto* doubt = figures.doubt(find_measure(measure)->needs);
  return doubt ? doubt->why : "";
}

}  // namespace

TEST_CASE("Figures of a trace") {
  Trace trace = launches();
  trace.alloc(1000, "0x10").alloc(500, "0x20", "host").free("0x10").alloc(300, "0x30", "managed");
  trace.call("transfer", "HtoD", R"("name":"cuMemcpyHtoD","size":7)");
  trace.call("init", "init", R"("name":"cuInit","error":"CUDA_ERROR_NO_DEVICE")", 100);
  // A failure that sound programs meet, too.
  trace.call("context", "any",
             R"("name":"cuCtxEnablePeerAccess","error":"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")",
             704);
  TraceFigures of = figures(trace, {{find_measure("calls"), "cuLaunchKernel"},
                                    {find_measure("call-time"), "cuLaunchKernel"},
                                    {find_measure("time-in-calls"), "cuNone"}});
  CHECK(value(of, "duration") == 9'000'000);
  CHECK(value(of, "calls") == 12);
  CHECK(value(of, "calls", "cuLaunchKernel") == 3);
  CHECK(value(of, "call-time", "cuLaunchKernel") == 1000);
  CHECK_FALSE(value(of, "time-in-calls", "cuNone"));
  CHECK(value(of, "time-in-calls") == 11'000);  // without the one inside another
  CHECK(value(of, "waiting") == 1000);
  CHECK(value(of, "launches") == 3);
  CHECK(value(of, "graph-launches") == 1);
  CHECK(value(of, "kernel-runs") == 7);
  CHECK(value(of, "kernels") == 2);
  CHECK(value(of, "launch-call-time") == 1000);
  CHECK(value(of, "transfers") == 1);
  CHECK(value(of, "transfer-bytes", "HtoD") == 7);
  CHECK(value(of, "memory-peak") == 1000);  // pinned memory of the host is not the GPU's
  CHECK(value(of, "memory-peak", "host") == 500);
  CHECK(value(of, "failed-calls") == 2);
  CHECK(value(of, "errors") == 1);
  CHECK_FALSE(value(of, "iteration-time"));
  CHECK(of.doubts.empty());
}

TEST_CASE("What makes figures uncertain") {
  Trace trace = launches();
  SECTION("nothing") {
    CHECK(figures(trace).doubts.empty());
    CHECK(figures(trace, {}, R"(,"returns":true)").doubts.empty());
  }
  SECTION("a trace without calls, or cut off, makes all uncertain") {
    for (const Measure& measure : all_measures()) {
      CHECK(figures(Trace()).doubt(measure.needs)->why == "holds no calls");
      CHECK(figures(trace, {}, "", "").doubt(measure.needs)->why == "is cut off");
    }
    trace.text += "no line\n";
    CHECK(doubt(figures(trace), "launches") == "has lines that could not be read");
  }
  SECTION("a loss, what it is about") {
    auto lost = [&](const std::string& reason) {
      return figures(trace, {}, "", R"({"type":"end","losses":{")" + reason + "\":1}}\n");
    };
    for (const char* measure : {"launches", "memory-peak", "errors", "iteration-time"})
      for (const char* reason : {"ring_full_entry", "late_library", "of_a_newer_version"})
        CHECK(doubt(lost(reason), measure) == std::string("has losses: ") + reason);
    CHECK(doubt(lost("out_pointer"), "launches").empty());
    CHECK_FALSE(doubt(lost("out_pointer"), "memory-peak").empty());
    CHECK(doubt(lost("ring_full_return"), "launches").empty());
    CHECK_FALSE(doubt(lost("ring_full_return"), "time-in-calls").empty());
    CHECK_FALSE(doubt(lost("ring_full_return"), "iteration-time").empty());
    CHECK(doubt(lost("log_overrun"), "failed-calls").empty());
    CHECK_FALSE(doubt(lost("log_overrun"), "errors").empty());
    CHECK(lost("driver_return").doubt(Needs::all()) == nullptr);
  }
  SECTION("graphs of which it is not known what they hold") {
    trace.call("graph", "launch", R"("name":"cuGraphLaunch","graph_unknown":"before")");
    TraceFigures of = figures(trace);
    for (const char* measure : {"kernel-runs", "kernels", "kernels-per-iteration"})
      CHECK(doubt(of, measure) == "does not say what every launched graph ran");
    for (const char* measure : {"launches", "graph-launches", "launches-per-iteration"})
      CHECK(doubt(of, measure).empty());
  }
  SECTION("calls that were left out") {
    TraceFigures of = figures(trace, {}, R"(,"left_out":["copies"],"returns":false)");
    CHECK(doubt(of, "transfers") == "does not have all copies");
    CHECK(doubt(of, "launches").empty());
    CHECK(doubt(of, "time-in-calls") == "was taken without returns");
  }
}
