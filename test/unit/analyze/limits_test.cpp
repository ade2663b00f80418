// Any program may have made a trace: what analyses keep stays bounded, however many of a thing the
// trace has, and the sums stay complete.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/gaps/idle.hpp"
#include "analyze/questions/errors.hpp"
#include "analyze/summary/totals.hpp"
#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

template <typename Kind>
void show(LineParser& parser, Kind& analysis, const Trace& trace) {
  each_line(parser, trace.text, [&](const Line& line) { analysis.line(line); });
  analysis.finish({});
}

}  // namespace

TEST_CASE("Kinds of failures, waits and requests to the driver that are too many are one") {
  constexpr int KINDS = 5000;
  Trace trace;
  for (int i = 0; i < KINDS; i++) {
    std::string name = R"("name":"f)" + std::to_string(i) + "\"";
    trace.call("other", "other", name + R"(,"error":"E)" + std::to_string(i) + "\"", 1);
    trace.call("sync", "ctx", name);
    trace.line(R"({"type":"kernel","op":"ioctl","name":"i","ts":1,"pid":1,"tid":1,"group":"g)" +
               std::to_string(i) + "\"}");
  }
  LineParser parser;
  analyze::Totals totals(parser.names());
  show(parser, totals, trace);
  CHECK(totals.calls == 2 * KINDS);
  auto check = [&](std::size_t kept, std::uint64_t of_others, std::uint64_t of_all) {
    CHECK(kept == 4097);
    CHECK(of_others == KINDS - 4096);
    CHECK(of_all == KINDS);
  };
  std::uint64_t failed = 0;
  for (const auto& failure : totals.failures) failed += failure.count;
  CHECK(parser.names().text(totals.failures.front().name) == "(others)");
  check(totals.failures.size(), totals.failures.front().count, failed);
  for (auto* times : {&totals.waits, &totals.groups}) {
    std::uint64_t count = 0;
    for (const auto& [name, one] : *times) count += one.count;
    check(times->size(), (*times)["(others)"].count, count);
  }
}

TEST_CASE("Functions that are called while the GPU is idle are kept apart up to a number") {
  Trace trace;
  trace.now = 10;
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stream":"0x0","async":true)");
  trace.call("sync", "ctx", R"("name":"cuCtxSynchronize")");
  for (int i = 0; i < 300; i++)
    trace.call("other", "other", R"("name":"f)" + std::to_string(i) + "\"");
  trace.call("kernel", "launch", R"("name":"cuLaunchKernel","stream":"0x0","async":true)");
  LineParser parser;
  Idle idle(parser.names(), 3);
  show(parser, idle, trace);
  REQUIRE(idle.processes().size() == 1);
  const auto& meanwhile = idle.processes().front().meanwhile;
  CHECK(meanwhile.size() == 257);
  CHECK(meanwhile.at(parser.names().add("(others)").id) == 44'000);
  CHECK(idle.processes().front().in_calls == 300'000);
}

TEST_CASE("A bounded part of what the driver says of a GPU's error is kept") {
  Trace trace;
  trace.line(R"({"type":"error","name":"Xid 31","ts":1,"xid":31,"meaning":")" +
             std::string(100'000, 'm') + R"(","message":")" + std::string(100'000, 'w') + "\"}");
  LineParser parser;
  Errors errors(parser.names(), true);
  show(parser, errors, trace);
  Errors::Answer answer = errors.answer();
  REQUIRE(answer.gpu_errors.size() == 1);
  CHECK(answer.gpu_errors.front().error.size() == 400);
  CHECK(answer.gpu_errors.front().example.text.size() == 400);
  REQUIRE(answer.events.size() == 1);
  CHECK(answer.events.front().error.size() == 400);
}
