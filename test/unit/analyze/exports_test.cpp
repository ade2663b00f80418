// Checks what each export writes, byte for byte.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "analyze/export/alnair_logs.hpp"
#include "analyze/export/chrome_trace.hpp"
#include "analyze/export/csv_table.hpp"
#include "analyze/export/perfetto_trace.hpp"
#include "analyze/export/tracks.hpp"
#include "analyze/telling_names.hpp"
#include "support/analyzing.hpp"
#include "support/graph_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

const std::string WITH_CLOCKS =
    R"({"type":"trace","clocks":{"realtime_ns":1000000,"monotonic_ns":40,"boottime_ns":50}})"
    "\n";

template <typename Make>
std::string written(const std::string& text, Make&& make) {
  std::string out;
  ByteStream stream([&](std::string_view bytes) {
    out += bytes;
    return true;
  });
  LineParser parser;
  auto analysis = make(parser.names(), stream);
  auto seen = each_line(parser, text, [&](const Line& line) { analysis->line(line); });
  analysis->finish({});
  stream.flush();
  CHECK(stream.size() == out.size());
  CHECK_FALSE(stream.failed());
  return out;
}

// A timeline with its only writer.
template <typename Writer>
struct One : Tracks {
  One(Names& names, std::unique_ptr<Writer> only) : Tracks(names, {only.get()}) {
    writer = std::move(only);
  }
  std::unique_ptr<Writer> writer;
};

std::string chrome(const std::string& text) {
  return written(WITH_CLOCKS + text, [](Names& names, ByteStream& out) {
    return std::make_unique<One<ChromeTrace>>(names, std::make_unique<ChromeTrace>(names, out));
  });
}
std::string perfetto(const std::string& text, PerfettoTrace::Packets packets) {
  return written(WITH_CLOCKS + text, [&](Names& names, ByteStream& out) {
    return std::make_unique<One<PerfettoTrace>>(
        names, std::make_unique<PerfettoTrace>(names, out, packets));
  });
}
std::string csv(const std::string& text) {
  return written(WITH_CLOCKS + text, [](Names& names, ByteStream& out) {
    return std::make_unique<CsvTable>(names, out);
  });
}

struct Logs {
  std::string metrics, timeline;
};
Logs alnair(const std::string& text) {
  Logs logs;
  ByteStream metrics([&](std::string_view bytes) { return !logs.metrics.append(bytes).empty(); });
  logs.timeline = written(WITH_CLOCKS + text, [&](Names& names, ByteStream& out) {
    return std::make_unique<AlnairLogs>(names, metrics, out);
  });
  metrics.flush();
  return logs;
}

std::string copy(const std::string& op, const std::string& more = {}) {
  return fmt::format(R"({{"id":1,"type":"transfer","op":"{}","name":"cuMemcpy","ts":5,)"
                     R"("duration_us":2.999,"pid":7,"tid":7,"ret":0,"size":64{}}})",
                     op, more) +
         "\n";
}

const std::string HOSTILE =
    R"({"id":1,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1234567,"duration_us":3.007,)"
    R"("pid":7,"tid":8,"ret":0,"stream":"0x0","async":true,"kernel":"a,\"b\"\n\u001b[31m</script>",)"
    R"("grid":[1,2,3],"block":[4,5,6],"shared":9,"args":{"x":"y,\"z\""}})";

}  // namespace

TEST_CASE("A call for Chrome") {
  std::string text = chrome(HOSTILE);
  auto events = nlohmann::json::parse(text)["traceEvents"];
  std::string kernel = "a,\"b\"\n\x1b[31m</script>";
  nlohmann::json launch = {{"ph", "X"},
                           {"pid", 7},
                           {"tid", 8},
                           {"ts", 1234.567},
                           {"dur", 3.007},
                           {"bind_id", 1099511627777},
                           {"flow_out", true},
                           {"name", telling_names({kernel}).front()},
                           {"cat", "kernel"},
                           {"args",
                            {{"stream", "0x0"},
                             {"kernel", kernel},
                             {"grid", {1, 2, 3}},
                             {"block", {4, 5, 6}},
                             {"shared", 9},
                             {"id", 1},
                             {"function", "cuLaunchKernel"}}}};
  CHECK(std::count(events.begin(), events.end(), launch) == 1);
  auto put = std::find_if(events.begin(), events.end(),
                          [](const auto& event) { return event.value("flow_in", false); });
  REQUIRE(put != events.end());
  CHECK((*put)["bind_id"] == launch["bind_id"]);
  CHECK((*put)["name"] == launch["name"]);
  CHECK((*put)["ts"] == launch["ts"]);
  CHECK((*put)["dur"] == 0);
  CHECK(text.find(R"("kernel":"a,\"b\"\n\u001b[31m</script>")") != std::string::npos);
}

TEST_CASE("A graph's launch for Chrome names the kernels that run") {
  std::string kernels = kernel_nodes("void f<int>(int*)", "3") + "," + kernel_nodes("g", "1");
  for (int i = 0; i < 12; i++) kernels += "," + kernel_nodes("k" + std::to_string(i), "2");
  auto events = nlohmann::json::parse(
      chrome(content_line(1, 30, 28, kernels) + graph_launch(1, 10, of_graph(1, 30, 28)) +
             kernel_launch(2, 20, "g", R"(,"captured":true)")))["traceEvents"];
  auto args_of = [&](const std::string& name) {
    for (const auto& event : events)
      if (event["name"] == name && event.contains("cat")) return event["args"];
    return nlohmann::json();
  };
  nlohmann::json graph = args_of("cuGraphLaunch");
  CHECK(graph["graph"] == 1);
  CHECK(graph["nodes"] == 30);
  CHECK(graph["kernels"] == 28);
  CHECK(graph["kernel_names"] ==
        "f ×3, g, k0 ×2, k1 ×2, k2 ×2, k3 ×2, k4 ×2, k5 ×2, k6 ×2, k7 ×2, 8 more");
  CHECK(args_of("g")["captured"] == "into a graph");
  // Nothing has been put into a stream for the GPU to do.
  CHECK(std::none_of(events.begin(), events.end(),
                     [](const auto& event) { return event.value("cat", "") == "enqueued"; }));
}

TEST_CASE("Rows of a table") {
  std::string text = csv(HOSTILE);
  std::string columns = text.substr(0, text.find('\n'));
  CHECK(columns.starts_with("id,host,type,op,name,library,symbol,ts_ns,duration_ns,pid,tid,ret,"));
  CHECK(text.substr(columns.size() + 1) ==
        "1,,kernel,launch,cuLaunchKernel,,,1234567,3007,7,8,0,,,,,,,,,,,0x0,true,,"
        "\"a,\"\"b\"\"??[31m</script>\",1x2x3,4x5x6,9,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"
        "\"{\"\"x\"\":\"\"y,\\\"\"z\\\"\"\"\"}\"\n");
  CHECK(csv(R"({"type":"process","op":"exit","pid":7,"ts":1})") == columns + "\n");
  // A sample's figures are in one column, as they are in the line.
  const std::string sample = R"({"type":"gpu","op":"sample","ts":5,"gpu":3,"power_w":704.1})";
  text = csv(sample).substr(columns.size() + 1);
  CHECK(text.starts_with(",,gpu,sample,,,,5,"));
  CHECK(
      text.ends_with(",\"{\"\"type\"\":\"\"gpu\"\",\"\"op\"\":\"\"sample\"\",\"\"ts\"\":5,"
                     "\"\"gpu\"\":3,\"\"power_w\"\":704.1}\"\n"));
  // U+009B begins an escape on some terminals; other letters stay.
  text = csv(R"({"type":"lost","reason":"a\u009b31m \u00e9","ts":1,"count":2})");
  CHECK(text.substr(columns.size() + 1).starts_with(",,lost,,\"a?31m \xc3\xa9\",,,1,"));
}

TEST_CASE("Copies as Alnair's profiler reports them") {
  auto kind = [](const std::string& op, const std::string& more = {}) {
    std::string line = alnair(copy(op, more)).timeline;
    return line.substr(line.rfind(' ') + 1);
  };
  CHECK(kind("HtoH") == "kind:0\n");
  CHECK(kind("HtoD") == "kind:1\n");
  CHECK(kind("HtoA") == "kind:1\n");
  CHECK(kind("DtoH") == "kind:2\n");
  CHECK(kind("AtoH") == "kind:2\n");
  CHECK(kind("DtoD") == "kind:3\n");
  CHECK(kind("peer") == "kind:3\n");
  CHECK(kind("unified") == "kind:4\n");
  CHECK(kind("HtoD", R"(,"inferred":true)") == "kind:4\n");
  CHECK(alnair(copy("HtoD")).timeline ==
        "name:cuMemcpy, start:1000005, burst:2, bytes:64, kind:1\n");
}

TEST_CASE("Alnair's metrics") {
  auto alloc = [](int id, const std::string& kind) {
    return fmt::format(R"({{"id":{},"type":"memory","op":"alloc","name":"cuMemAlloc","ts":{},)"
                       R"("duration_us":0.600,"pid":7,"tid":7,"ret":0,"size":100,"ptr":"0x{}",)"
                       R"("kind":"{}"}})",
                       id, id * 10, id, kind) +
           "\n";
  };
  Logs logs = alnair(alloc(1, "device") + alloc(2, "device") + alloc(3, "host") +
                     R"({"id":4,"type":"memory","op":"free","name":"cuMemFree","ts":5000,)"
                     R"("duration_us":0.100,"pid":7,"tid":7,"ret":0,"size":100,"ptr":"0x1"})"
                     "\n"
                     R"({"id":5,"type":"init","name":"no\ntime","ts":5100,"pid":7,"tid":7})"
                     "\n"
                     R"({"type":"process","op":"exit","ts":6000,"pid":7})");
  // Each took 0.6 µs: the file has the sum. What was not freed ended with the process.
  CHECK(logs.metrics ==
        "name:mem_used,count:100\n"
        "name:cuMemAlloc,count:3,burst:1\n"
        "name:cuMemFree,count:1,burst:0\n"
        "name:no?time,count:1,burst:0\n");
  CHECK(logs.timeline.find("no?time") == std::string::npos);
}

TEST_CASE("A call for Perfetto") {
  std::string text =
      perfetto(R"({"id":9,"type":"init","name":"cuInit","ts":100,"duration_us":0.020,)"
               R"("pid":7,"tid":7,"ret":0})",
               PerfettoTrace::Packets::plain);
  // timestamp 150, NEEDS_STATE, a slice that begins on track 2 with name 1, category 1 and the
  // annotation 39 (id) 9, sequence 1; interned in the same packet.
  std::string begin =
      "\x40\x96\x01\x68\x02\x5a\x0e\x48\x01\x58\x02\x50\x01\x18\x01\x22\x04\x08\x27\x18\x09\x50\x01"
      "\x62\x16\x12\x0a\x08\x01\x12\x06"
      "cuInit\x0a\x08\x08\x01\x12\x04"
      "init";
  std::string end("\x40\xaa\x01\x5a\x04\x48\x02\x58\x02\x50\x01");  // timestamp 170
  std::string both = "\x0a" + std::string(1, static_cast<char>(begin.size())) + begin + "\x0a" +
                     std::string(1, static_cast<char>(end.size())) + end;
  CHECK(text.find(both) != std::string::npos);
}

TEST_CASE("A launch for Perfetto has its kernel's short name, and an arrow to its stream") {
  std::string text =
      perfetto(R"({"id":9,"type":"kernel","op":"launch","name":"l","ts":100,"duration_us":0.020,)"
               R"~("kernel":"void at::f<int>(int*)","pid":7,"tid":7,"stream":"0x5","async":true})~",
               PerfettoTrace::Packets::plain);
  // A message's field that is a fixed64: flow_ids 47, terminating_flow_ids 48; both 1.
  std::string one(7, '\0');
  CHECK(text.find("\xf9\x02\x01" + one) != std::string::npos);
  CHECK(text.find("\x81\x03\x01" + one) != std::string::npos);
  CHECK(text.find(std::string("\x08\x01\x12\x01"
                              "f")) != std::string::npos);
  CHECK(text.find("void at::f<int>(int*)") != std::string::npos);
}

TEST_CASE("Kernels are named when those that come first are known") {
  auto launch = [](int id, const std::string& kernel) {
    return fmt::format(R"({{"id":{},"type":"kernel","op":"launch","name":"l","kernel":"{}",)"
                       R"("ts":{},"duration_us":0.001,"pid":7,"tid":7}})",
                       id, kernel, id * 10) +
           "\n";
  };
  std::string text = launch(1, "void f<int>(int*)") + launch(2, "void f<float>(float*)");
  std::string written = chrome(text);
  CHECK(written.find(R"("name":"f<int>")") != std::string::npos);
  CHECK(written.find(R"("name":"f<float>")") != std::string::npos);
  // Long after the first, one is distinguished from them; they keep their names.
  text = launch(1, "void f<int>(int*)");
  for (int i = 2; i < 20'000; i++) text += launch(i, "void g()");
  written = chrome(text + launch(20'000, "void f<float>(float*)"));
  CHECK(written.find(R"("name":"f")") != std::string::npos);
  CHECK(written.find(R"("name":"f<float>")") != std::string::npos);
}

TEST_CASE("Packets for Perfetto, deflated") {
  std::string calls;
  for (int id = 1; id < 20'000; id++)
    calls += fmt::format(R"({{"id":{},"type":"init","name":"cuInit","ts":{},"duration_us":0.005,)"
                         R"("pid":7,"tid":7,"ret":0}})",
                         id, id * 10) +
             "\n";
  std::string plain = perfetto(calls, PerfettoTrace::Packets::plain);
  std::string deflated = perfetto(calls, PerfettoTrace::Packets::deflated);
  CHECK(deflated.size() < plain.size() / 4);
  std::string inflated;
  constexpr std::size_t LIMIT = 512 << 10;  // of Perfetto's reader
  auto varint = [&](std::size_t& at) {
    std::size_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      auto byte = static_cast<unsigned char>(deflated[at++]);
      value |= static_cast<std::size_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  for (std::size_t at = 0; at < deflated.size();) {
    CHECK(varint(at) == 10);  // a packet
    varint(at);
    CHECK(varint(at) == (50 << 3 | 2));  // of compressed packets
    std::size_t size = varint(at);
    std::string packets(LIMIT, '\0');
    uLongf got = packets.size();
    REQUIRE(::uncompress(reinterpret_cast<Bytef*>(packets.data()), &got,
                         reinterpret_cast<const Bytef*>(deflated.data() + at), size) == Z_OK);
    inflated.append(packets, 0, got);
    at += size;
  }
  CHECK(inflated == plain);
}

TEST_CASE("A name that is too long for Perfetto's reader is cut between characters") {
  std::string text = perfetto(R"({"id":9,"type":"kernel","op":"launch","kernel":")" +
                                  [] {
                                    std::string name = "x";
                                    for (int i = 0; i < 30'000; i++) name += "é";
                                    return name;
                                  }() +
                                  R"(","ts":100,"duration_us":0.020,"pid":7,"tid":7})",
                              PerfettoTrace::Packets::plain);
  // The event's name, and the kernel's.
  CHECK(text.size() < 26'000);
  CHECK(nlohmann::json::accept('"' + text.substr(text.find("xé"), (8 << 10) - 1) + '"'));
  CHECK(nlohmann::json::accept('"' + text.substr(text.rfind("xé"), (16 << 10) - 1) + '"'));
}

TEST_CASE("Names of processes and of losses are cut as well") {
  std::string name(400'000, 'x');
  std::string text = perfetto(
      R"({"type":"process","op":"start","ts":1,"pid":7,"comm":")" + name + "\"}\n" +
          R"({"id":9,"type":"init","name":"c","ts":100,"pid":7,"tid":7})" + "\n" +
          R"({"type":"lost","ts":5,"severity":"lost","reason":")" + name + "\",\"count\":1}",
      PerfettoTrace::Packets::plain);
  CHECK(text.size() < 4 * (16 << 10));
}

TEST_CASE("A stream whose writing failed takes all, and keeps nothing") {
  std::size_t writes = 0;
  ByteStream stream([&](std::string_view) { return ++writes < 2; });
  for (int i = 0; i < 100; i++) stream.text(std::string(100'000, 'x'));
  stream.flush();
  CHECK(stream.failed());
  CHECK(writes == 2);
}

namespace {

const std::string ISSUED_KERNEL =
    R"({"type":"trace","gpu_timing":"nodes"})"
    "\n"
    R"({"id":3,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1000,"duration_us":2.000,)"
    R"~("pid":7,"tid":8,"ret":0,"stream":"0x5","async":true,"kernel":"void f<int>(int*)"})~"
    "\n"
    R"({"type":"gpu","op":"kernel","ts":4000,"duration_us":1.500,"pid":7,"call":3,"stream":"0x5",)"
    R"~("queue":2,"kernel":"void f<int>(int*)","grid":[1,2,3],"block":[4,5,6],"shared":9,)~"
    R"("device":0,"node":6})"
    "\n";

}  // namespace

TEST_CASE("What a GPU did, for Chrome") {
  auto events = nlohmann::json::parse(chrome(ISSUED_KERNEL))["traceEvents"];
  auto has = [&](const nlohmann::json& event) {
    return std::count(events.begin(), events.end(), event) == 1;
  };
  std::uint32_t tid = 0;
  for (const auto& event : events)
    if (event.value("cat", "") == "kernel" && event["ts"] == 4.0) tid = event["tid"];
  CHECK(has({{"ph", "M"},
             {"pid", 7},
             {"tid", tid},
             {"name", "thread_name"},
             {"args", {{"name", "GPU 0, stream 2 (0x5)"}}}}));
  CHECK(has({{"ph", "X"},
             {"pid", 7},
             {"tid", tid},
             {"ts", 4.0},
             {"dur", 1.5},
             {"name", "f"},
             {"cat", "kernel"},
             {"args",
              {{"stream", "0x5"},
               {"kernel", "void f<int>(int*)"},
               {"grid", {1, 2, 3}},
               {"block", {4, 5, 6}},
               {"shared", 9},
               {"device", 0},
               {"call", 3},
               {"queue", 2},
               {"node", 6},
               {"queued_ns", 3000}}}}));
  nlohmann::json arrow = {
      {"ph", "s"},    {"pid", 7}, {"tid", 8}, {"ts", 1.0}, {"name", "asks the GPU"},
      {"cat", "gpu"}, {"id", 3}};
  CHECK(has(arrow));
  arrow.update({{"ph", "f"}, {"tid", tid}, {"ts", 4.0}, {"bp", "e"}});
  CHECK(has(arrow));
  CHECK(std::none_of(events.begin(), events.end(),
                     [](const auto& event) { return event.value("cat", "") == "enqueued"; }));
}

TEST_CASE("What a GPU did, for Perfetto") {
  std::string text = perfetto(ISSUED_KERNEL, PerfettoTrace::Packets::plain);
  // Both ends have 2^62 + 3, a fixed64: flow_ids 47, terminating_flow_ids 48.
  std::string call("\x03\0\0\0\0\0\0\x40", 8);
  CHECK(text.find("\xf9\x02" + call) != std::string::npos);
  CHECK(text.find("\x81\x03" + call) != std::string::npos);
  CHECK(text.find("GPU 0") != std::string::npos);
  CHECK(text.find("stream 2 (0x5)") != std::string::npos);
}

TEST_CASE("What a GPU did is a row of a table") {
  std::string text = csv(ISSUED_KERNEL), columns = text.substr(0, text.find('\n'));
  CHECK(columns.find("call,size,kind,") != std::string::npos);
  CHECK(columns.find("queue,node,direction,unjoined,") != std::string::npos);
  std::string row = text.substr(text.rfind('\n', text.size() - 2) + 1);
  CHECK(row.starts_with(",,gpu,kernel,,,,4000,1500,7,,,,,,,3,"));
  CHECK(row.find(",void f<int>(int*),1x2x3,4x5x6,9,") != std::string::npos);
  CHECK(row.find(",2,6,") != std::string::npos);
}
