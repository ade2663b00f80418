#include "sink/log_sink.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using namespace cudabpf;

namespace {

struct Logged {
  std::vector<std::string> lines;
  TraceWritten written{.path = "/t/t.0001.jsonl"};
  LogSink sink{[this](std::string line) { lines.push_back(std::move(line)); },
               [this] { return written; }};
};

LossEvent loss_of(Loss reason, std::optional<std::uint64_t> count) {
  LossEvent loss;
  loss.reason = reason;
  loss.count = count;
  return loss;
}

}  // namespace

TEST_CASE("A service logs what it traces, and where to") {
  Logged logged;
  Session session;
  session.mode = "machine";
  session.host = "gpu-node-17";
  logged.sink.begin(session);
  session.libraries.resize(2);
  session.libraries[0].path = "/lib/libcuda.so.1";
  session.libraries[0].functions = 682;
  session.libraries[1].path = "/old/libcuda.so.1";
  session.libraries[1].error = "it exports nothing";
  logged.sink.begin(session);
  Library later;
  later.path = "/app/libcuda.so.1";
  later.functions = 1;
  logged.sink.library(later);
  CHECK(logged.lines ==
        std::vector<std::string>{"tracing every process on gpu-node-17 into /t/t.0001.jsonl: "
                                 "no libcuda is known yet",
                                 "tracing every process on gpu-node-17 into /t/t.0001.jsonl: "
                                 "/lib/libcuda.so.1 (682 functions), "
                                 "/old/libcuda.so.1 (not traced: it exports nothing)",
                                 "found later: /app/libcuda.so.1 (1 function)"});
}

TEST_CASE("A service logs a loss at once, and then at most once a minute") {
  Logged logged;
  logged.sink.flush();
  CHECK(logged.lines.empty());
  logged.sink.lost(loss_of(Loss::ring_entry, 1200));
  logged.sink.lost(loss_of(Loss::ring_entry, 34));
  logged.sink.flush();
  REQUIRE(logged.lines.size() == 1);
  CHECK(logged.lines[0].starts_with("lost: 1,234 ring_full_entry: The ring buffer was full"));
  logged.sink.lost(loss_of(Loss::ring_entry, 5));
  logged.sink.lost(loss_of(Loss::late_library, std::nullopt));
  logged.sink.flush();
  CHECK(logged.lines.size() == 1);
  logged.written = {"/t/t.0002.jsonl", 2, 100, 3 << 20, 0, true};
  Totals totals;
  totals.reason = "terminated";
  totals.counts.calls = 4321;
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 1239;
  logged.sink.end(totals);
  REQUIRE(logged.lines.size() == 4);
  CHECK(logged.lines[1] == "lost: 5 ring_full_entry");
  CHECK(logged.lines[2].starts_with("lost: an unknown number late_library: A library was mapped"));
  CHECK(logged.lines[3] ==
        "the trace ends (terminated): 4,321 calls in 2 files, 3.00 MiB, the last /t/t.0002.jsonl; "
        "1,239 lost");
}
