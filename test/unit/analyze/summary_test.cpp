#include "analyze/summary/summary.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

#include "support/sample_program.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Summed {
  explicit Summed(const SampleProgram& program) {
    TraceText trace(program.text());
    Summary summary(trace.names(), {});
    trace.show(summary);
    json = summary.json()["summary"];
    page = page_text([&](Page& to) { summary.add_to(to, true); }, 1000);
  }
  Json json;
  std::string page;
};

}  // namespace

TEST_CASE("The idle share of inference is shown beside that of the whole") {
  SampleProgram program;
  program.launch("prepare");
  program.wait();
  program.pause(100'000);  // it reads the weights
  for (int i = 0; i < 5; i++) {
    for (auto kernel : {"a", "b", "c"}) program.launch(kernel, 20);
    program.wait(20);
    program.pause(20);
  }
  Summed summed(program);
  CHECK(summed.json["inference_idle"]["time_us"] == 0.48);
  CHECK(summed.json["inference_idle"]["idle_us"] == 0.08);
  CHECK(summed.json["gaps"]["processes"][0]["working_time_us"] == 100.48);
  CHECK_THAT(summed.page, ContainsSubstring("at least 16.7 % of the 480 ns of inference; "
                                            "at least 99.6 % of 100 µs from first to last work"));
}

TEST_CASE("What ran in graphs is shown beside what was launched") {
  auto program_of = [](std::string_view last) {
    SampleProgram program;
    program.launch("prepare");
    program.graph_content(1, 20, "in_graph");
    for (int i = 0; i < 5; i++) {
      program.launch_graph(R"("graph":1)");
      program.launch("sample");
      program.wait();
    }
    if (!last.empty()) program.launch_graph(last);
    return program;
  };
  Summed known(program_of(""));
  CHECK(known.json["launches"] == 6);
  CHECK(known.json["graph_launches"] == 5);
  CHECK(known.json["launched"] == 11);
  CHECK(known.json["kernel_runs"] == 106);
  CHECK(known.json["kernel_runs_in_graphs"] == 100);
  CHECK(known.json["unknown_graph_launches"].empty());
  CHECK(known.json["iterations"]["launches"] == 2);
  CHECK(known.json["iterations"]["kernels"] == 21);
  CHECK_THAT(known.page, ContainsSubstring("2 launches of 21 kernels"));
  CHECK_THAT(known.page,
             ContainsSubstring("launching 6 kernels and 5 graphs, in which 100 kernels ran;"));

  Summed unknown(program_of(R"("graph_unknown":"changed")"));
  CHECK(unknown.json["unknown_graph_launches"]["changed"] == 1);
  CHECK_FALSE(unknown.json["iterations"].contains("kernels"));
  CHECK_THAT(unknown.page, !ContainsSubstring("of 21 kernels"));
  CHECK_THAT(unknown.page, ContainsSubstring("in which 100 kernels ran; what 1 of the graphs ran "
                                             "is not known"));
}

TEST_CASE("Without iterations there is no inference to be idle in") {
  SampleProgram program;
  program.launch("a");
  program.wait();
  CHECK_THAT(Summed(program).page, !ContainsSubstring("of inference;"));
}

TEST_CASE("Work inside of other calls, and waits of unknown time") {
  SampleProgram program;
  program.call("kernel", "launch", "cuLaunchKernel", 5, R"(,"stream":"0x0","parent":2)");
  program.call("kernel", "launch", "cuLaunchGrid", 10, R"(,"stream":"0x0")");
  program.wait();
  program.line(
      R"({"id":90,"type":"sync","op":"stream","name":"cuStreamSynchronize","ts":2000,"pid":7,"tid":7,"stream":"0x0","unfinished":true})");
  Summed summed(program);
  CHECK(summed.json["launches"] == 2);
  CHECK(summed.json["nested_launches"] == 1);
  CHECK_THAT(summed.page, ContainsSubstring("10 ns launching 1 kernel;"));
  CHECK_THAT(summed.page, ContainsSubstring("cuStreamSynchronize 10 ns in 2 (1 of unknown time)"));
}

TEST_CASE("What samples of GPUs add up to is shown, where there are any") {
  SampleProgram program;
  program.wait();
  CHECK_FALSE(Summed(program).json.contains("gpus"));
  for (const char* more :
       {R"("ts":10,"energy_j":100.5,"throttle":["thermal"])",
        R"("ts":30,"energy_j":150,"window_ms":100,"sm_active":80,"power_w":500)"})
    program.line(std::string(R"({"type":"gpu","op":"sample","gpu":2,)") + more + "}");
  Summed summed(program);
  REQUIRE(summed.json["gpus"].size() == 1);
  const Json& gpu = summed.json["gpus"][0];
  CHECK(gpu["device"] == 2);
  CHECK(gpu["samples"] == 2);
  CHECK(gpu["sm_active"] == 80);
  CHECK(gpu["most_power_w"] == 500);
  CHECK(gpu["energy_j"] == 49.5);
  CHECK(gpu["throttled"] == 1);
  CHECK_FALSE(gpu.contains("most_memory"));
  CHECK_THAT(summed.page, ContainsSubstring("GPUs (NVML)"));
  CHECK_THAT(summed.page, ContainsSubstring("500 W"));
}

TEST_CASE("Copies between GPUs are named by these, whatever the call says that it is") {
  SampleProgram program;
  auto copy = [&](const char* op, const std::string& more) {
    program.call("transfer", op, "cuMemcpy", 1, R"(,"size":1024)" + more);
  };
  copy("DtoD", R"(,"src_device":0,"dst_device":1)");
  copy("peer", R"(,"src_device":0,"dst_device":1)");
  copy("peer", R"(,"src_device":1,"dst_device":1)");
  copy("peer", R"(,"src_device":1)");
  copy("DtoD", "");
  Summed summed(program);
  CHECK(summed.json["transfers"]["GPU 0 to GPU 1"]["count"] == 2);
  CHECK(summed.json["transfers"]["peer"]["count"] == 2);
  CHECK(summed.json["transfers"]["DtoD"]["count"] == 1);
  CHECK_THAT(summed.page, ContainsSubstring("GPU 0 to GPU 1 2.00 KiB in 2 calls"));
}

TEST_CASE("The busiest of many processes are listed, and the others together") {
  SampleProgram program;
  for (program.pid = 1; program.pid <= 9; program.pid++) program.launch("a");
  Summed summed(program);
  CHECK_THAT(summed.page, ContainsSubstring("9 calls of 9 processes"));
  CHECK_THAT(summed.page, ContainsSubstring("\n  9  "));
  CHECK(summed.json["processes"].size() == 9);
  CHECK(summed.json["other_processes"]["count"] == 0);
}

TEST_CASE(
    "A summary says which thread's verdict and phases it shows, and has a line for each process") {
  SampleProgram program;
  auto operations = [&](std::uint32_t pid, std::uint64_t pause, std::uint64_t wait) {
    program.pid = program.tid = pid;
    program.process("start");
    for (int i = 0; i < 10; i++) {
      for (auto kernel : {"a", "b", "c"}) {
        program.launch(kernel, 5'000);
        program.pause(pause);
      }
      program.wait(wait);
    }
  };
  operations(7, 100'000, 1'000);
  program.launch("d");  // so it launches most
  operations(8, 1'000, 1'000'000);
  Summed summed(program);
  CHECK(summed.json["shown"]["pid"] == 7);
  CHECK(summed.json["shown"]["comm"] == "sample");
  CHECK(summed.json["shown"]["other_launches"] == 30);
  CHECK(summed.json["shown"]["processes"] == 2);
  const Json& processes = summed.json["processes"];
  REQUIRE(processes.size() == 2);
  CHECK((processes[0]["pid"] == 7 && processes[0]["shown"] == true));
  CHECK(processes[0]["verdict"]["id"] == "host_bound");
  CHECK((processes[1]["pid"] == 8 && processes[1]["shown"] == false));
  CHECK(processes[1]["verdict"]["id"] == "gpu_bound");
  CHECK(summed.json["verdict"][0]["id"] == "host_bound");
  CHECK_THAT(summed.page, ContainsSubstring("7 sample") &&
                              ContainsSubstring("Host-bound (shown below)\n") &&
                              ContainsSubstring("GPU-bound\n") &&
                              ContainsSubstring("describe thread 7 of process 7 sample, which "
                                                "launches most (other threads: 30 launches)."));
}

TEST_CASE("A process that was attached to has its command where a run has the given command") {
  SampleProgram program;
  program.line(
      R"({"type":"process","op":"start","ts":1,"pid":7,"comm":"python3","cmdline":"python3 decode.py"})");
  program.launch("a");
  TraceText trace(program.text(), R"(,"mode":"attach","pids":[7])");
  Summary summary(trace.names(), {});
  trace.show(summary);
  Json json = summary.json()["summary"];
  CHECK(json["shown"]["command"] == "python3 decode.py");
  std::string page = page_text([&](Page& to) { summary.add_to(to, false); });
  CHECK_THAT(page, ContainsSubstring("1 process in 9.00 ms\n  python3 decode.py  (pid 7)\n"));
  TraceText nothing("", R"(,"mode":"attach","pids":[7])");
  Summary of_nothing(nothing.names(), {});
  nothing.show(of_nothing);
  CHECK_THAT(page_text([&](Page& to) { of_nothing.add_to(to, false); }),
             ContainsSubstring("  attached to 7\n"));
}

TEST_CASE("A summary is as high as the terminal, and has first what is wanted most") {
  SampleProgram program;
  for (int i = 0; i < 10; i++) {
    for (auto kernel : {"a", "b", "c"}) program.launch(kernel, 5'000);
    program.wait(1'000);
  }
  TraceText trace(program.text());
  Summary summary(trace.names(), {});
  trace.show(summary);
  auto lines_at = [&](unsigned height, std::string& text) {
    Page page({.width = 100, .height = height}, 160);
    summary.add_to(page, false);
    text = page.take();
    return static_cast<unsigned>(std::count(text.begin(), text.end(), '\n'));
  };
  std::string whole, some;
  unsigned all = lines_at(0, whole);
  CHECK(lines_at(all + 1, some) == all);
  CHECK(some == whole);
  CHECK_THAT(whole, ContainsSubstring("\nphases ") && ContainsSubstring("iterations/s"));
  CHECK(lines_at(all, some) < all);
  // Tables became lines.
  CHECK_THAT(some,
             ContainsSubstring("\n  phases ") && ContainsSubstring("\n  --all shows the rest\n"));
  CHECK(some.find("each iteration") < some.find("GPU idle"));
  CHECK(some.find("GPU idle") < some.find("phases"));
}

TEST_CASE("What each process issued to each of its GPUs is shown where there are several") {
  SampleProgram program;
  auto ask = [&](const char* type, const char* op, const char* name, int device,
                 const char* more = "") {
    program.call(type, op, name, 10, fmt::format(R"(,"stream":"0x0","device":{}{})", device, more));
  };
  ask("kernel", "launch", "cuLaunchKernel", 0, R"(,"kernel":"a")");
  CHECK_THAT(Summed(program).page, !ContainsSubstring("GPUs"));
  ask("kernel", "launch", "cuLaunchKernel", 1, R"(,"kernel":"a")");
  ask("kernel", "launch", "cuLaunchKernel", 1, R"(,"kernel":"a")");
  ask("transfer", "HtoD", "cuMemcpyHtoD", 1, R"(,"size":2048)");
  ask("sync", "stream", "cuStreamSynchronize", 0);
  Summed summed(program);
  REQUIRE(summed.json["devices"].size() == 2);
  const Json &busy = summed.json["devices"][0], &other = summed.json["devices"][1];
  CHECK((busy["device"] == 1 && busy["launches"] == 2 && busy["copied_bytes"] == 2048));
  CHECK((other["device"] == 0 && other["launches"] == 1 && other["waiting_us"] == 0.01));
  CHECK_THAT(summed.page, ContainsSubstring("GPU 1         2       1  2.00 KiB"));
}
