#include "trace/header.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "trace/read/line_parser.hpp"
#include "wrong_values.hpp"

using namespace cudabpf;

namespace {

Sampling full_sampling() {
  SampledGpu gpu;
  gpu.device = 3;
  gpu.name = "NVIDIA H200";
  gpu.uuid = "GPU-1";
  gpu.bus_id = "0000:17:00.0";
  gpu.activity = "utilization";
  gpu.why = "it is shared";
  gpu.power = "instant";
  gpu.lacks = {"sm_active", "pcie_rx"};
  Sampling sampling;
  sampling.period_ns = 100'000'000;
  sampling.window_ns = 200'000'000;
  sampling.slow_ns = 1'000'000'000;
  sampling.gpus = {gpu};
  sampling.own_pids = true;
  sampling.why_not = "one of two";
  sampling.switches = true;
  sampling.switches_why_not = "not all";
  return sampling;
}

// With something in each field.
Session full_session() {
  Session session;
  session.version = "0.1.0";
  session.host = "h\"ö\x01st";
  session.linux_release = "6.1.0";
  session.boot_id = "0c9b2f4e-1111-2222-3333-444455556666";
  session.rank = {{"RANK", 5}, {"WORLD_SIZE", 8}};
  session.arch = "x86_64";
  session.driver = "580.159.04";
  session.gpus = {{0, "NVIDIA H200", "GPU-1", "0000:17:00.0"}, {1, "NVIDIA L4", "GPU-2", ""}};
  session.sampling = full_sampling();
  session.mode = "run";
  session.source = "inside";
  session.unseen = {"children"};
  session.command = {"python3", "-c", "pass"};
  session.pids = {42, 4'294'967'295};
  session.profile = "light";
  session.only = {"cuMem*"};
  session.exclude = {"cuCtx*", "cuLaunch*"};
  session.only_libraries = {"cuda", "nccl"};
  session.left_out = {"launches"};
  session.returns = false;
  session.follow = false;
  session.driver_traced = true;
  session.driver_way = "fentry";
  session.gpu_timing = "graphs";
  session.gpu_window_ns = 500'000'000;
  session.gpu_period_ns = 10'000'000'000;
  session.ranges = true;
  session.python = true;
  session.python_slower_ns = 100000;
  session.shapes = true;
  session.blocks = true;
  session.redacted = true;
  session.ring_size = 32 << 20;
  session.realtime_ns = 1'760'000'000'000'000'000;
  session.monotonic_ns = 5;
  session.boottime_ns = 7;
  session.namespace_offsets = {-86'400'000'000'000, 9};
  session.clock_error = {{-1500, 4000, 12, 0x2001}};
  session.libraries = {{"nccl",
                        "/usr/lib/libcuda.so.1",
                        "abc",
                        66305,
                        12,
                        600,
                        3,
                        2,
                        1,
                        {"cuA (short)"},
                        5000,
                        "no symbols",
                        9}};
  session.features = {{"uprobe_multi", Feature::State::yes, "kernel 6.6", false},
                      {"session", Feature::State::no, "", true},
                      {"fentry", Feature::State::unknown, "", false}};
  return session;
}

TraceHeader read_again(const Session& session, const FilePart& part = {}) {
  std::string line = header_line(session, part);
  REQUIRE(line.ends_with('\n'));
  auto header = header_in(line);
  REQUIRE(header);
  return *header;
}

void check_same(const Session& session, const TraceHeader& header) {
  // All fields of a Session, so that a new one does not go unchecked.
  const auto& [version, host, linux_release, boot_id, rank, arch, driver, gpus, sampling, mode,
               source, unseen, command, pids, profile, only, exclude, only_libraries, left_out,
               returns, follow, driver_traced, driver_way, gpu_timing, gpu_window, gpu_period,
               ranges, python, python_slower, shapes, blocks, redacted, ring_size, realtime,
               monotonic, boottime, offsets, clock_error, libraries, features] = session;
  CHECK(header.format == "cudabpf-trace");
  CHECK(header.format_version == FORMAT_VERSION);
  CHECK(header.version == version);
  CHECK(header.host == host);
  CHECK(header.linux_release == linux_release);
  CHECK(header.boot_id == boot_id);
  CHECK(header.rank == rank);
  CHECK(header.arch == arch);
  CHECK(header.driver == driver);
  CHECK(header.gpus == gpus);
  CHECK(header.sampling.value_or(Sampling{}) == sampling);
  CHECK(header.mode == mode);
  CHECK(header.source == source);
  CHECK(header.unseen == unseen);
  CHECK(header.command == command);
  CHECK(header.pids == pids);
  CHECK(header.profile == profile);
  CHECK(header.only == only);
  CHECK(header.exclude == exclude);
  CHECK(header.only_libraries == only_libraries);
  CHECK(header.left_out == left_out);
  CHECK(header.returns == returns);
  CHECK(header.follow == follow);
  CHECK(header.driver_traced == driver_traced);
  CHECK(header.driver_way == driver_way);
  CHECK(header.gpu_timing == gpu_timing);
  CHECK(header.gpu_window_ns == gpu_window);
  CHECK(header.gpu_period_ns == gpu_period);
  CHECK(header.ranges == ranges);
  CHECK(header.python == python);
  CHECK(header.python_slower_ns == python_slower);
  CHECK(header.shapes == shapes);
  CHECK(header.blocks == blocks);
  CHECK(header.redacted == redacted);
  CHECK(header.ring_size == ring_size);
  CHECK(header.clocks == TraceClocks{realtime, monotonic, boottime, offsets});
  CHECK(header.clock_error == clock_error);
  CHECK(header.libraries == libraries);
  CHECK(header.features == features);
}

}  // namespace

TEST_CASE("What the writer says of a session, the reader reads back") {
  Session session = full_session();
  TraceHeader header = read_again(session, {3, 17});
  check_same(session, header);
  CHECK(header.part == FilePart{3, 17});
  CHECK(header.began() == session.realtime_ns);
  CHECK(header.measures_gpus());
  CHECK(header.measures_whole_graphs());

  Session nothing;
  header = read_again(nothing);
  check_same(nothing, header);
  CHECK(header.part == FilePart{});
  CHECK_FALSE(header.sampling);
  CHECK_FALSE(header.measures_gpus());

  nothing.sampling.why_not = "--no-sample";
  check_same(nothing, read_again(nothing));
  nothing.gpu_timing = "nodes";
  CHECK(read_again(nothing).measures_gpus());
  CHECK_FALSE(read_again(nothing).measures_whole_graphs());
}

TEST_CASE("What a header has of another type, it does not have") {
  auto whole = nlohmann::json::parse(header_line(full_session(), {3, 17}));
  std::size_t seen = 0;
  each_wrong_type(whole, [&](const std::string& what, const auto& wrong, const auto& without) {
    INFO(what);
    // Clocks may be behind as well as ahead.
    bool is_signed =
        what.starts_with("/clocks/namespace_") || what.starts_with("/clock_error/offset_ns");
    if (is_signed && what.find("= -") != what.npos) return;
    seen++;
    CHECK(header_in(wrong) == header_in(without));
  });
  CHECK(seen > 500);
}

TEST_CASE("What a header has out of range, it does not have") {
  auto read = [](const char* text) { return header_in(text).value(); };
  CHECK(read(R"({"part":4294967296})").part.number == 0);
  CHECK(read(R"({"part":4294967295})").part.number == 4'294'967'295U);
  CHECK(read(R"({"since":9223372036854775808})").part.since == 0);
  CHECK(read(R"({"since":9223372036854775807})").part.since == 9'223'372'036'854'775'807U);
  CHECK(read(R"({"ring_size":18446744073709551615})").ring_size == 18'446'744'073'709'551'615U);
  CHECK(read(R"({"ring_size":18446744073709551616})").ring_size == 0);
  CHECK(read(R"({"pids":[-1,4294967296,1.5,"7",8]})").pids == std::vector<std::uint32_t>{8});
  CHECK(read(R"({"clocks":{"realtime_ns":-5,"boottime_ns":6}})").clocks ==
        TraceClocks{0, 0, 6, {}});
  auto gpus = read(R"({"gpus":[{"index":2147483648,"name":"a"},"b",{"index":2}]})").gpus;
  CHECK(gpus == std::vector<Gpu>{{-1, "a", "", ""}, {2, "", "", ""}});
  auto sampling = read(R"({"sampling":{"period_ms":9223372036855,"window_ms":9223372036854,)"
                       R"("gpus":[{"gpu":65536},{"gpu":-1},{},{"gpu":65535}]}})")
                      .sampling.value();
  CHECK(sampling.period_ns == 0);
  CHECK(sampling.window_ns == 9'223'372'036'854'000'000);
  REQUIRE(sampling.gpus.size() == 1);
  CHECK(sampling.gpus[0].device == 65535);
}

TEST_CASE("A list in a header has what is of its type, and not more than is sensible") {
  CHECK(header_in(R"({"command":[1,"a",null,["b"],{"c":"d"},"e"]})")->command ==
        std::vector<std::string>{"a", "e"});
  std::string things, texts;
  for (int i = 0; i < 100'000; i++) things += i ? ",{}" : "{}", texts += i ? ",\"\"" : "\"\"";
  auto header = header_in(R"({"gpus":[)" + things + R"(],"libraries":[)" + things +
                          R"(],"features":[)" + things + R"(],"only":[)" + texts + "]}");
  REQUIRE(header);
  CHECK(header->gpus.size() == 4096);
  CHECK(header->libraries.size() == 4096);
  CHECK(header->features.size() == 4096);
  CHECK(header->only.size() == 65537);
}

TEST_CASE("What is no JSON object is no header") {
  for (std::string text : {"", "[]", "5", "{", "{}}", "\"type\"", "{\"part\":1e999}", "\xff{}"}) {
    CAPTURE(text);
    CHECK_FALSE(header_in(text));
    CHECK(why_no_header(text) == "its first line is not a header");
  }
  CHECK_FALSE(header_in(R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}"));
  CHECK(header_in("{}") == TraceHeader{});
  CHECK(why_no_header("{}") == "it looks like other JSON");
  CHECK(why_no_header(R"({"type":"call","ts":5})") == "its first line, the header, is missing");
}

TEST_CASE("A header's line has the header, and no other line has") {
  analyze::LineParser parser;
  analyze::Line line;
  for (int again = 0; again < 2; again++) {
    std::string text = R"({"type":"trace","mode":"run"})",
                padded = text + "\n" + std::string(64, ' ');
    REQUIRE(parser.parse({padded.data(), text.size()}, line));
    REQUIRE(line.header);
    CHECK(line.header->mode == "run");
    CHECK_FALSE(line.ending);
    text = R"({"type":"end","part":2})", padded = text + "\n" + std::string(64, ' ');
    REQUIRE(parser.parse({padded.data(), text.size()}, line));
    REQUIRE(line.ending);
    CHECK(line.ending->part == 2);
    CHECK_FALSE(line.header);
    text = R"({"type":"lost","ts":2})", padded = text + "\n" + std::string(64, ' ');
    REQUIRE(parser.parse({padded.data(), text.size()}, line));
    CHECK_FALSE(line.header);
    CHECK_FALSE(line.ending);
  }
}
