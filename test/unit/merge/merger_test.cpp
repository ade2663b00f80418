#include "merge/merger.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "merge/merged_stream.hpp"
#include "support/temporary_folder.hpp"
#include "trace/end.hpp"
#include "trace/header.hpp"

using namespace cudabpf;
using namespace cudabpf::merge;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint64_t BEGAN = 1'795'255'200'000'000'000;

struct Clocks {
  std::string host = "node1", boot = "boot-1";
  std::uint64_t monotonic = 50'000, realtime = BEGAN;
  std::string error = R"({"offset_ns":0,"max_error_us":2,"estimated_error_us":1,"status":0})";
  std::string more = "";  // of the header
};

std::string header(const Clocks& clocks) {
  return fmt::format(
      R"({{"type":"trace","format":"cudabpf-trace","format_version":"2.0","host":"{}",)"
      R"("boot_id":"{}","mode":"run","clocks":{{"realtime_ns":{},"monotonic_ns":{},)"
      R"("boottime_ns":1}},"clock_error":{}{}}})"
      "\n",
      clocks.host, clocks.boot, clocks.realtime, clocks.monotonic, clocks.error, clocks.more);
}

std::string call(int id, int ts, double us, int pid = 7) {
  return fmt::format(
      R"({{"id":{},"type":"init","op":"init","name":"cuInit","ts":{},"duration_us":{:.3f},)"
      R"("pid":{},"tid":{},"ret":0}})"
      "\n",
      id, ts, us, pid, pid);
}

std::string end(int calls, const std::string& losses = "{}", int lost = 0) {
  return fmt::format(
      R"({{"type":"end","ts":9000,"duration_ns":9000,"calls":{},"unfinished_calls":0,)"
      R"("losses":{},"accounts":{{"entered":{},"emitted":{},"dropped":{},"received":{}}},)"
      R"("reason":"command ended"}})"
      "\n",
      calls, losses, 2 * calls + lost, 2 * calls, lost, 2 * calls);
}

struct Merged {
  std::vector<std::string> lines;
  TraceHeader header;
  TraceEnd end;

  // What the lines between them have there, if they have it.
  std::vector<std::string> all(const char* key) const {
    std::vector<std::string> values;
    for (std::size_t i = 1; i + 1 < lines.size(); i++) {
      auto json = nlohmann::json::parse(lines[i]);
      if (json.contains(key)) values.push_back(json[key].dump());
    }
    return values;
  }
};

class Traces {
 public:
  void add(const std::string& text) {
    files_.push_back({folder_.write(fmt::format("{}.jsonl", files_.size()), text)});
  }
  Result<std::unique_ptr<Merger>> open() const {
    return Merger::open(files_, [] { return analyze::TraceReader::Progress(); });
  }
  Merged merge() const {
    auto merger = open();
    if (!merger) FAIL(merger.error().message);
    return merge(**merger);
  }
  static Merged merge(Merger& merger) {
    std::string text;
    for (;;) {
      auto more = merger.next(text);
      REQUIRE(more);
      if (!*more) break;
    }
    Merged merged;
    for (std::size_t at = 0, newline; (newline = text.find('\n', at)) != text.npos;
         at = newline + 1)
      merged.lines.push_back(text.substr(at, newline - at));
    CHECK(merger.lines() == merged.lines.size());
    merged.header = header_in(merged.lines.front()).value();
    merged.end = end_in(merged.lines.back()).value();
    CHECK(merged.end.lines == merged.lines.size());
    return merged;
  }
  std::string refusal() const {
    auto merger = open();
    return merger ? "none" : merger.error().message;
  }
  const std::vector<Files>& files() const { return files_; }

 private:
  TemporaryFolder folder_;
  std::vector<Files> files_;
};

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("Lines of traces of one boot come in the order of that boot's clock") {
  Traces traces;
  traces.add(header({}) + call(1, 100, 0.1) + call(2, 400, 0.1) + call(3, 4000, 1) + end(3));
  traces.add(header({.monotonic = 50'200}) + call(1, 50, 0.1, 8) + call(2, 60, 2, 8) + end(2));
  Merged merged = traces.merge();
  // The second began 200 ns later. Its second call ended after the first trace's second.
  CHECK(merged.all("ts") == Strings{"100", "250", "400", "260", "4000"});
  CHECK(merged.all("pid") == Strings{"7", "8", "7", "8", "7"});
  CHECK(merged.all("host").empty());
  CHECK(merged.header.host == "node1");
  CHECK(merged.header.mode == "run");
  REQUIRE(merged.header.merged.size() == 2);
  CHECK(merged.header.merged[1].offset_ns == 200);
  CHECK(merged.header.merged[1].bound_ns == 0);
  CHECK(order_bound(merged.header.merged) == OrderBound{true, 0});
  CHECK(merged.header.clocks->monotonic == 50'000);
  CHECK(merged.end.totals.calls == 5);
  CHECK(merged.end.totals.duration_ns == 9200);
  CHECK(merged.end.accounts == Accounts{10, 10, 0, 10});
  CHECK(merged.end.reason == "merged");
}

TEST_CASE("Hosts are kept apart, in numbers and by name") {
  Traces traces;
  traces.add(header({.monotonic = 9, .realtime = BEGAN + 500, .more = R"(,"pids":[7])"}) +
             call(1, 0, 0.1) + end(1));
  traces.add(header({.host = "node2", .boot = "boot-2", .more = R"(,"pids":[7])"}) +
             call(1, 0, 0.1) + end(1, R"({"ring_full_entry":3})", 6));
  traces.add(header({.host = "node2", .boot = "boot-3"}) + call(1, 1000, 0.1) + end(1));
  Merged merged = traces.merge();
  CHECK(merged.all("ts") == Strings{"0", "500", "1000"});
  CHECK(merged.all("pid") == Strings{"10000007", "7", "20000007"});
  CHECK(merged.all("host") == Strings{"\"node2\"", "\"node1\"", "\"node2 (2)\""});
  CHECK(merged.header.host.empty());
  CHECK(merged.header.pids == std::vector<std::uint32_t>{7, 10'000'007});
  CHECK(merged.header.clocks->realtime == BEGAN);
  const auto& of = merged.header.merged;
  CHECK(of[1].alignment == Alignment::time_of_day);
  CHECK(of[0].losses.empty());
  CHECK(of[1].losses == std::map<std::string, std::uint64_t>{{"ring_full_entry", 3}});
  CHECK(of[1].accounts == Accounts{8, 2, 6, 2});
  // The books hold for all of them.
  CHECK(merged.end.accounts == Accounts{12, 6, 6, 6});
  CHECK(merged.end.totals.losses == of[1].losses);
  OrderBound bound = order_bound(of);
  CHECK(bound.known);
  CHECK(bound.ns == *of[0].error_ns + *of[1].error_ns);
}

TEST_CASE("What is missing of a trace is missing of the merge") {
  Traces traces;
  traces.add(header({}) + call(1, 100, 0.1) + "broken\n" + call(2, 200, 0.1, 10'000'000));
  traces.add(header({.monotonic = 50'001}) + call(1, 0, 0.1, 8) + end(1));
  Merged merged = traces.merge();
  CHECK(merged.lines.size() == 4);
  CHECK(merged.header.merged[0].malformed == 2);
  REQUIRE(merged.header.merged[0].cut_off.size() == 1);
  CHECK_THAT(merged.header.merged[0].cut_off[0], ContainsSubstring("0.jsonl: it has no end"));
  CHECK_FALSE(merged.header.merged[0].accounts);
  auto reader = open_merged(traces.files(), [] { return analyze::TraceReader::Progress(); });
  REQUIRE(reader);
  for (;;) {
    auto line = (*reader)->next();
    REQUIRE(line);
    if (!*line) break;
  }
  const auto& facts = (*reader)->facts();
  CHECK(facts.cut_off == merged.header.merged[0].cut_off);
  CHECK(facts.malformed == 2);
  CHECK(facts.calls == 2);
  CHECK(facts.paths.size() == 2);
}

TEST_CASE("A merge that is not read to its end ends") {
  Traces traces;
  std::string calls;
  for (int i = 1; i < 50'000; i++) calls += call(i, i * 10, 0.001);
  traces.add(header({}) + calls + end(49'999));
  traces.add(header({.monotonic = 50'001}) + call(1, 0, 0.1, 8) + end(1));
  auto reader = open_merged(traces.files(), [] { return analyze::TraceReader::Progress(); });
  REQUIRE(reader);
  CHECK((*reader)->next());
}

TEST_CASE("A merge has what a trace that is still recorded had at first") {
  Traces traces;
  traces.add(header({}) + call(1, 100, 0.1) + call(2, 200, 0.1));
  traces.add(header({.monotonic = 50'001}) + call(1, 0, 0.1, 8) + end(1));
  auto merger = traces.open();
  REQUIRE(merger);
  std::ofstream(traces.files()[0][0], std::ios::app) << call(3, 300, 0.1) + end(3);
  Merged merged = Traces::merge(**merger);
  CHECK(merged.lines.size() == 5);
  CHECK(merged.end.totals.calls == 3);
  CHECK(merged.header.merged[0].cut_off.size() == 1);
}

TEST_CASE("A trace that became shorter is an error") {
  Traces traces;
  std::string calls;
  for (int i = 1; i < 100'000; i++) calls += call(i, i * 10, 0.001);
  traces.add(header({}) + calls);
  traces.add(header({.monotonic = 50'001}) + call(1, 0, 0.1, 8) + end(1));
  auto merger = traces.open();
  REQUIRE(merger);
  std::filesystem::resize_file(traces.files()[0][0], calls.size() - 5000);
  Result<bool> more = true;
  for (std::string text; more && *more; text.clear()) more = (*merger)->next(text);
  REQUIRE_FALSE(more);
  CHECK_THAT(more.error().message, ContainsSubstring("0.jsonl changed while it was merged"));
}

TEST_CASE("What two traces of a machine say of it is there once") {
  std::string gpus = R"(,"driver_traced":true,"sampling":{"source":"nvml","gpus":[)"
                     R"({"gpu":0,"uuid":"GPU-1","bus_id":"0000:01:00.0"}]})";
  auto sample = [](int ts) {
    return fmt::format(R"({{"type":"gpu","op":"sample","ts":{},"gpu":0,"power_w":100.0}})"
                       "\n",
                       ts);
  };
  std::string xid = R"({"type":"error","op":"xid","name":"Xid 79","ts":50,"xid":79})"
                    "\n";
  Traces traces;
  traces.add(header({.more = gpus}) + sample(10) + xid + sample(9000) + end(0));
  traces.add(header({.host = "pod", .monotonic = 50'100, .more = gpus}) + sample(20) + xid +
             sample(8950) + end(0));
  traces.add(header({.host = "node2", .boot = "boot-2", .more = gpus}) + sample(30) + xid + end(0));
  Merged merged = traces.merge();
  CHECK(merged.all("ts") == Strings{"10", "30", "50", "50", "9000", "9050"});
  CHECK(merged.all("gpu") == Strings{"0", "2000", "0", "1000"});
  CHECK(merged.header.merged[0].repeated == 0);
  CHECK(merged.header.merged[1].repeated == 2);
  CHECK(merged.header.merged[2].repeated == 0);
  REQUIRE(merged.header.sampling);
  CHECK(merged.header.sampling->gpus.size() == 3);
}

TEST_CASE("Traces that cannot be merged are refused") {
  std::string first = header({}) + call(1, 100, 0.1) + call(2, 2000, 0.1) + end(2);
  SECTION("a process would be counted twice") {
    Traces traces;
    traces.add(first);
    traces.add(header({.monotonic = 50'500}) + call(1, 0, 0.1) + end(1));
    CHECK_THAT(traces.refusal(), ContainsSubstring("process 7 of node1 is in ") &&
                                     ContainsSubstring("0.jsonl and in ") &&
                                     ContainsSubstring("1.jsonl at the same time"));
  }
  SECTION("but one that was recorded twice in turn is not") {
    Traces traces;
    traces.add(first);
    traces.add(header({.monotonic = 60'000}) + call(1, 0, 0.1) + end(1));
    CHECK(traces.merge().all("pid") == Strings{"7", "7", "7"});
  }
  SECTION("no time of day") {
    Traces traces;
    traces.add(first);
    traces.add(header({.boot = "boot-2", .realtime = 0}) + end(0));
    CHECK_THAT(traces.refusal(), ContainsSubstring("1.jsonl cannot be merged: it does not say"));
  }
  SECTION("years apart") {
    Traces traces;
    traces.add(first);
    traces.add(header({.boot = "boot-2", .realtime = BEGAN / 2}) + end(0));
    CHECK_THAT(traces.refusal(), ContainsSubstring("0.jsonl begins"));
  }
  SECTION("a merge") {
    Traces traces;
    traces.add(first);
    traces.add(header({.monotonic = 60'000, .more = R"(,"merged":[{"number":0}])"}) + end(0));
    CHECK_THAT(traces.refusal(), ContainsSubstring("1.jsonl is itself made of several traces"));
  }
}
