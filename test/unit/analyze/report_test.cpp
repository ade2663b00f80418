#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyze/report/packed.hpp"
#include "analyze/report/report_data.hpp"
#include "analyze/report/report_timeline.hpp"
#include "support/analyzing.hpp"

namespace cudabpf::analyze {

namespace {

Json meta_in(const std::string& data) {
  std::size_t size = 0;
  for (std::size_t i = 4; i-- > 0;) size = size << 8 | static_cast<unsigned char>(data[i]);
  return Json::parse(data.substr(4, size));
}

struct DrawnReport {
  LineParser parser;
  std::unique_ptr<ReportTimeline> timeline;

  explicit DrawnReport(const std::string& text, std::size_t most = ReportEvent::MAX) {
    timeline = std::make_unique<ReportTimeline>(parser.names(), most);
    auto derived = each_line(parser, text, [this](const Line& line) { timeline->line(line); });
    timeline->finish({});
  }
  Json meta() const { return meta_in(timeline_data(*timeline)); }
};

}  // namespace

TEST_CASE("Report: each call is an event, while there are few") {
  Trace trace;
  for (int i = 0; i < 10; i++) trace.call("sync", "stream", R"("name":"cuStreamSynchronize")");
  DrawnReport drawn(trace.text);
  REQUIRE(drawn.timeline->threads().size() == 1);
  const auto& events = drawn.timeline->threads()[0].rows[CALLS];
  REQUIRE(events.size() == 10);
  CHECK(events[3].begin == 6000);
  CHECK(events[3].end == 7000);
  CHECK(events[3].id == 4);
  CHECK(drawn.timeline->resolution() == 0);
  Json meta = drawn.meta();
  CHECK(meta["lanes"] == Json::parse(R"([{"kind":"calls","thread":0,"depth":0,"events":10}])"));
  CHECK(meta["resolution_ns"] == 0);
}

TEST_CASE("Report: a process has the windows in which its GPU times were recorded") {
  Trace trace;
  trace.call("sync", "stream", R"("name":"cuStreamSynchronize")");
  CHECK_FALSE(DrawnReport(trace.text).meta()["processes"][0].contains("gpu_windows"));
  int pid = DrawnReport(trace.text).meta()["processes"][0]["pid"].get<int>();
  for (int ts : {1000, 9000})
    trace.line(fmt::format(R"({{"type":"gpu","op":"window","ts":{},"duration_us":2.0,"pid":{}}})",
                           ts, pid));
  CHECK(DrawnReport(trace.text).meta()["processes"][0]["gpu_windows"] ==
        Json::parse("[[1000,3000],[9000,11000]]"));
}

TEST_CASE("Report: where events are too many, those close together become one, and none is lost") {
  Trace trace;
  for (int i = 0; i < 5000; i++) trace.call("sync", "stream", R"("name":"cuStreamSynchronize")");
  DrawnReport drawn(trace.text, 100);
  const auto& events = drawn.timeline->threads()[0].rows[CALLS];
  CHECK(events.size() <= 100);
  CHECK(events.size() > 20);
  std::uint64_t count = 0, busy = 0;
  for (const auto& event : events) {
    count += event.count;
    busy += event.busy;
  }
  CHECK(count == 5000);
  CHECK(busy == 5'000'000);
  CHECK(drawn.meta()["resolution_ns"].get<std::uint64_t>() > 0);
}

TEST_CASE("Report: calls made inside others are below them") {
  DrawnReport drawn(
      R"({"id":3,"type":"memory","op":"alloc","name":"c","ts":30,"duration_us":0.010,"pid":1,"tid":1,"ret":0,"parent":2}
{"id":2,"type":"memory","op":"alloc","name":"b","ts":20,"duration_us":0.040,"pid":1,"tid":1,"ret":0,"parent":1}
{"id":4,"type":"memory","op":"alloc","name":"d","ts":70,"duration_us":0.010,"pid":1,"tid":1,"ret":0,"parent":1}
{"id":1,"type":"memory","op":"alloc","name":"a","ts":10,"duration_us":0.090,"pid":1,"tid":1,"ret":0}
)");
  Json lanes = drawn.meta()["lanes"];
  REQUIRE(lanes.size() == 3);
  CHECK(lanes[0]["events"] == 1);
  CHECK(lanes[1]["events"] == 2);
  CHECK(lanes[2]["events"] == 1);
}

TEST_CASE("Report: what is beyond a browser's numbers is counted, not drawn") {
  DrawnReport drawn(
      R"({"id":1,"type":"sync","op":"x","name":"a","ts":9007199254740992,"duration_us":1,"pid":1,"tid":1,"ret":0}
{"id":2,"type":"sync","op":"x","name":"a","ts":5,"duration_us":9000000000000000.000,"pid":1,"tid":1,"ret":0}
)");
  CHECK(drawn.timeline->left_out().too_late == 1);
  const auto& events = drawn.timeline->threads()[0].rows[CALLS];
  REQUIRE(events.size() == 1);
  CHECK(events[0].end <= ReportTimeline::LATEST);
}

TEST_CASE("Report: base64 ends where the bytes do") {
  for (std::size_t size : {0, 1, 2, 3, 100, 3'000'000}) {
    std::string text;
    ByteStream out([&](std::string_view piece) {
      text += piece;
      return true;
    });
    put_packed(out, std::string(size, 'x'));
    out.flush();
    CHECK(text.size() % 4 == 0);
    CHECK(text.starts_with("eF"));  // zlib's header, at this level
  }
}

TEST_CASE("Report: iterations that begin in the part are columns, numbered in the whole trace") {
  std::string text;
  for (int step = 0; step < 6; step++) {
    for (int launch = 0; launch < 3; launch++)
      text +=
          fmt::format(R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},)"
                      R"("duration_us":1.0,"pid":7,"tid":8,"ret":0,"kernel":"k{}"}})"
                      "\n",
                      step * 4 + launch + 1, step * 100'000 + launch * 10'000 + 5000, launch);
    text +=
        fmt::format(R"({{"id":{},"type":"sync","op":"context","name":"cuCtxSynchronize","ts":{},)"
                    R"("duration_us":1.0,"pid":7,"tid":8,"ret":0}})"
                    "\n",
                    step * 4 + 4, step * 100'000 + 40'000);
  }
  LineParser parser;
  ReportTimeline timeline(parser.names());
  Execution execution(parser.names(), {}, 0);
  auto derived = each_line(parser, text, [&](const Line& line) {
    timeline.line(line);
    execution.line(line);
  });
  TraceFacts facts;
  facts.last_ts = 600'000;
  facts.part.from = 150'000;
  execution.finish(facts);
  timeline.finish(facts);
  Json meta = meta_in(timeline_data(timeline, &execution));
  CHECK(meta["iterations"] == Json::parse(R"({"pid":7,"tid":8,"first":3,"warm_up":0,"count":4,)"
                                          R"("left_out":0})"));
  CHECK(meta["columns"][8] == Json::parse(R"({"name":"iteration_begin","bytes":12})"));
  CHECK(meta_in(timeline_data(timeline))["iterations"] == nullptr);
}

}  // namespace cudabpf::analyze
