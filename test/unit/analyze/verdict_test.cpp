#include "analyze/summary/verdict.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/summary/summary.hpp"
#include "support/sample_program.hpp"
#include "support/trace_text.hpp"
#include "support/units.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct Verdict {
  explicit Verdict(const SampleProgram& program,
                   const std::string& end = R"({"type":"end","ts":9000000,"duration_ns":9000000})"
                                            "\n") {
    TraceText trace(program.text(), "", end);
    Summary summary(trace.names(), {});
    trace.show(summary);
    findings = summary.json()["summary"]["verdict"];
  }
  std::string ids() const {
    std::string text;
    for (const Json& one : findings)
      text += (text.empty() ? "" : " ") + one["id"].get<std::string>();
    return text;
  }
  Json operator[](const std::string& id) const {
    for (const Json& one : findings)
      if (one["id"] == id) return one;
    return {{"text", ""}};
  }
  std::string text(const std::string& id) const { return (*this)[id]["text"].get<std::string>(); }
  Json findings;
};

// Iterations of three launches, then what is special in each, then a wait; after what was before.
template <typename Special>
SampleProgram repeating(std::uint64_t launch, std::uint64_t pause, std::uint64_t wait,
                        Special special, SampleProgram program = {}) {
  for (int i = 0; i < 10; i++) {
    for (auto kernel : {"a", "b", "c"}) {
      program.launch(kernel, launch);
      program.pause(pause);
    }
    special(program);
    program.wait(wait);
  }
  return program;
}
constexpr auto NOTHING = [](SampleProgram&) {};
SampleProgram repeating(std::uint64_t launch, std::uint64_t pause, std::uint64_t wait) {
  return repeating(launch, pause, wait, NOTHING);
}

// Iterations of five launches, without a wait.
SampleProgram in_a_row(int iterations, std::uint64_t launch, std::uint64_t between) {
  SampleProgram program;
  for (int i = 0; i < iterations; i++)
    for (auto kernel : {"a", "b", "c", "d", "e"}) {
      program.launch(kernel, launch);
      program.pause(between);
    }
  return program;
}

}  // namespace

TEST_CASE("A program that waits for nothing but its own code is bound by the host") {
  Verdict verdict(repeating(5 * US, 20 * US, 1 * US));
  REQUIRE(verdict.ids() == "host_bound");
  CHECK(verdict["host_bound"]["sure"] == "known");
  CHECK(verdict.text("host_bound") ==
        "an iteration takes 76.0 µs, 78.9 % of it outside CUDA between 3 launches; copies "
        "from the GPU and waits take 1.3 %. Fewer launches would help (CUDA graphs, "
        "torch.compile).");
  CHECK(verdict["host_bound"]["figures"]["waiting_share"].get<double>() > 1.3);
  CHECK(verdict["host_bound"]["calls"].size() > 1);
}

TEST_CASE("Fewer launches are not recommended where other work lies between them") {
  Verdict verdict(repeating(5 * US, 200 * US, 1 * US));
  REQUIRE(verdict.ids() == "host_bound");
  CHECK_THAT(
      verdict.text("host_bound"),
      ContainsSubstring("Reducing launches alone will not help: the host spends 200 µs per launch "
                        "outside CUDA."));
}

TEST_CASE("A program that launches graphs already gets no advice to use some") {
  SampleProgram program;
  program.graph_content(1, 20, "k");
  for (int i = 0; i < 10; i++) {
    program.launch_graph(R"("graph":1)", 5 * US);
    program.pause(60 * US);
    program.wait(1 * US);
  }
  Verdict verdict(program);
  REQUIRE(verdict.ids() == "host_bound");
  CHECK_THAT(verdict.text("host_bound"),
             ContainsSubstring("between 1 launch;") &&
                 ContainsSubstring("Most launches are of graphs: fewer, larger ones or less") &&
                 !ContainsSubstring("torch.compile"));
}

TEST_CASE("Launches may themselves be what takes the host's time") {
  Verdict verdict(repeating(20 * US, 5 * US, 6 * US));
  REQUIRE(verdict.ids() == "host_bound");
  CHECK(verdict["host_bound"]["sure"] == "likely");
  CHECK_THAT(verdict.text("host_bound"), ContainsSubstring("74.1 % of it in 3 launches"));
}

TEST_CASE("A program that waits for the GPU is bound by it") {
  SECTION("by a wait") {
    Verdict verdict(repeating(5 * US, 2 * US, 200 * US));
    REQUIRE(verdict.ids() == "gpu_bound");
    CHECK(verdict["gpu_bound"]["sure"] == "known");
    CHECK_THAT(verdict.text("gpu_bound"), ContainsSubstring("90.5 % of it waiting for the GPU. "));
  }
  SECTION("by a copy of the result, which waits") {
    Verdict verdict(repeating(5 * US, 2 * US, 1 * US,
                              [](SampleProgram& program) { program.to_host(64, 40 * US); }));
    REQUIRE(verdict.ids() == "gpu_bound");
    CHECK(verdict["gpu_bound"]["sure"] == "likely");
    CHECK_THAT(verdict.text("gpu_bound"), ContainsSubstring("in copies to the host"));
  }
  SECTION("in launches that find its queue full") {
    Verdict verdict(repeating(90 * US, 2 * US, 1 * US));
    REQUIRE(verdict.ids() == "gpu_bound");
    CHECK(verdict["gpu_bound"]["sure"] == "likely");
    CHECK_THAT(verdict.text("gpu_bound"), ContainsSubstring("90.0 µs a launch"));
  }
  SECTION("at the end of all that was issued in a row") {
    SampleProgram program = in_a_row(10, 5 * US, 0);
    program.wait(5 * MS);
    CHECK(Verdict(program).ids() == "gpu_bound");
  }
}

TEST_CASE("Between these it is mixed") {
  Verdict verdict(repeating(10 * US, 10 * US, 25 * US));
  REQUIRE(verdict.ids() == "mixed");
  CHECK_THAT(verdict.text("mixed"),
             ContainsSubstring("35.3 % of it outside CUDA, 35.3 % in 3 launches and "
                               "29.4 % waiting for the GPU"));
}

TEST_CASE("Calls that bring the work no further are named") {
  auto with = [](auto special) { return Verdict(repeating(5 * US, 5 * US, 1 * US, special)); };
  CHECK(with([](SampleProgram& program) { program.to_device(1 << 20, 100 * US); }).ids() ==
        "copies");
  CHECK(with([](SampleProgram& program) { program.alloc(100 * US); }).ids() == "allocating");
  CHECK(with([](SampleProgram& program) {
          program.call("event", "query", "cuEventQuery", 100 * US);
        }).ids() == "other_calls");
  CHECK(with([](SampleProgram& program) { program.alloc(7 * US); }).ids() ==
        "host_bound allocating");
}

TEST_CASE("A long way to the first iteration is reported, with its longest part") {
  SampleProgram program;
  program.init(20 * MS);
  program.launch("prepare", 5 * US);
  program.wait(5 * US);
  program.pause(900 * MS);
  Verdict verdict(repeating(5 * US, 20 * US, 1 * US, NOTHING, program));
  REQUIRE(verdict.ids() == "host_bound loading");
  CHECK(verdict.text("loading") ==
        "the first iteration starts 920 ms into 921 ms; 900 ms of that was outside CUDA; the GPU "
        "had no work for 900 ms, from 0.020011 s (after cuStreamSynchronize).");
  CHECK(verdict["loading"]["calls"][0] == 3);
}

TEST_CASE("Where several threads launch, a finding says which one it is about") {
  SampleProgram program;
  program.tid = 8;
  program.launch("other");
  program.tid = 7;
  program.pause(900 * MS);
  Verdict verdict(repeating(5 * US, 20 * US, 1 * US, NOTHING, program));
  CHECK_THAT(verdict.text("loading"),
             ContainsSubstring("the first iteration of thread 7 starts 900 ms into") &&
                 ContainsSubstring("900 ms of that was outside CUDA in that thread"));
}

TEST_CASE("Failures are reported but for the usual ones, the gravest first") {
  SampleProgram program = repeating(5 * US, 20 * US, 1 * US);
  auto fail = [&](const char* name, int ret, const char* error) {
    program.line(fmt::format(
        R"({{"id":{},"type":"memory","op":"any","name":"{}","ts":{},"duration_us":1.000,"pid":7,"tid":7,"ret":{},"error":"{}"}})",
        1000 + ret, name, program.now += 1000, ret, error));
  };
  SECTION("usual") {
    fail("cuModuleUnload", 4, "CUDA_ERROR_DEINITIALIZED");
    CHECK(Verdict(program).ids() == "host_bound");
  }
  SECTION("grave") {
    fail("cuMemFree", 1, "CUDA_ERROR_INVALID_VALUE");
    fail("cuMemFree", 1, "CUDA_ERROR_INVALID_VALUE");
    fail("cuStreamSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    Verdict verdict(program);
    REQUIRE(verdict.ids() == "errors host_bound");
    CHECK_THAT(verdict.text("errors"),
               StartsWith("cuStreamSynchronize failed 1 time with CUDA_ERROR_ILLEGAL_ADDRESS"));
    CHECK_THAT(verdict.text("errors"), ContainsSubstring("calls of 1 other kind"));
    CHECK(verdict["errors"]["calls"] == Json::array({1700}));
  }
  SECTION("out of memory") {
    fail("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY");
    Verdict verdict(program);
    REQUIRE(verdict.ids() == "out_of_memory host_bound");
    CHECK_THAT(verdict.text("out_of_memory"), ContainsSubstring("first cuMemAlloc at"));
  }
  SECTION("a process that a signal ended") {
    program.line(fmt::format(R"({{"type":"process","op":"exit","ts":{},"pid":7,"signal":11}})",
                             program.now + 5));
    Verdict verdict(program);
    REQUIRE(verdict.ids() == "errors host_bound");
    CHECK_THAT(verdict.text("errors"), ContainsSubstring("process 7 was ended by signal 11"));
  }
}

TEST_CASE("Memory that grows during the work is reported, what is built up at first is not") {
  auto program = [](auto allocates) {
    SampleProgram sample;
    for (int i = 0; i < 200; i++) {
      for (auto kernel : {"a", "b", "c"}) {
        sample.launch(kernel, 5 * US);
        sample.pause(20 * US);
      }
      if (allocates(i))
        sample.call("memory", "alloc", "cuMemAlloc", US,
                    fmt::format(R"(,"size":{},"ptr":"{:#x}","kind":"device")", 1 << 21,
                                0x7f0000000000 + (i << 21)));
      sample.wait(US);
    }
    return Verdict(sample);
  };
  Verdict leaks = program([](int) { return true; });
  REQUIRE(leaks.ids() == "host_bound memory_growth");
  CHECK_THAT(leaks.text("memory_growth"), ContainsSubstring("2.00 MiB an iteration"));
  CHECK(program([](int i) { return i < 50; }).ids() == "host_bound");
}

TEST_CASE("Without work there is no verdict on it, and without times neither") {
  SampleProgram idle;
  idle.init(20 * MS);
  CHECK(Verdict(idle).ids() == "no_work");

  SampleProgram untimed;
  for (int i = 0; i < 20; i++)
    untimed.line(fmt::format(
        R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},"pid":7,"tid":7,"kernel":"a"}})",
        i + 1, 1000 * i));
  CHECK(Verdict(untimed).ids() == "not_judged");
}

TEST_CASE("What a trace has lost comes first") {
  SampleProgram program = repeating(5 * US, 20 * US, 1 * US);
  SECTION("events") {
    Verdict verdict(program, R"({"type":"end","ts":9,"losses":{"ring_full_entry":4}})"
                             "\n");
    REQUIRE(verdict.ids() == "incomplete host_bound");
    CHECK(verdict.text("incomplete") ==
          "4 of 44 events were lost (9.1 %). Figures may be too low.");
  }
  SECTION("so many that the others say too little") {
    Verdict verdict(program, R"({"type":"end","ts":9,"losses":{"ring_full_entry":10}})"
                             "\n");
    REQUIRE(verdict.ids() == "incomplete not_judged");
    CHECK(verdict.text("not_judged").ends_with("since too many events were lost."));
  }
  SECTION("of which the kernel counted all") {
    Verdict verdict(
        program,
        R"({"type":"end","ts":9,"losses":{"ring_full_entry":10,"ring_full_return":10},"accounts":{"entered":100,"emitted":80,"dropped":20,"received":80}})"
        "\n");
    CHECK(verdict.text("incomplete") ==
          "20 of 100 events were lost (20.0 %). Figures may be too low.");
  }
  SECTION("a process, which is no event") {
    Verdict verdict(program, R"({"type":"end","ts":9,"losses":{"process_unrecorded":1}})"
                             "\n");
    CHECK(verdict.text("incomplete") == "1 process was not recorded. Figures may be too low.");
  }
  SECTION("one event of many") {
    for (int i = 0; i < 3000; i++) program.launch("d", 1);
    Verdict verdict(program, R"({"type":"end","ts":9,"losses":{"ring_full_entry":1}})"
                             "\n");
    CHECK(verdict.text("incomplete") ==
          "1 of 3,041 events were lost (less than 0.1 %). Figures may be too low.");
  }
  SECTION("an unknown number of events") {
    program.line(R"({"type":"lost","ts":1,"reason":"late_library","severity":"lost"})");
    CHECK(Verdict(program).text("incomplete") ==
          "some events were lost (how many is not known). Figures may be too low.");
    program.line(R"({"type":"lost","ts":2,"reason":"late_library","severity":"lost","count":3})");
    CHECK(Verdict(program).text("incomplete") ==
          "some events were lost (at least 3; the total is not known). Figures may be too low.");
  }
  SECTION("incomplete events are no loss") {
    CHECK(Verdict(program, R"({"type":"end","ts":9,"losses":{"out_pointer":2}})"
                           "\n")
              .ids() == "host_bound");
  }
  SECTION("the end") {
    CHECK_THAT(Verdict(program, "").text("incomplete"), ContainsSubstring("cut off at 0.00"));
  }
}

TEST_CASE("Loading is not judged as the work where a trace is cut off before anything repeats") {
  SampleProgram program;
  for (const char* kernel : {"a", "b", "c"}) {
    program.launch(kernel, 5 * US);
    program.pause(1 * MS);
  }
  program.wait();
  CHECK(Verdict(program).ids().find("host_bound") == 0);
  Verdict cut(program, "");
  CHECK(cut.ids() == "incomplete not_judged");
  CHECK_THAT(cut.text("not_judged"), ContainsSubstring("cut off before anything repeats"));
}

TEST_CASE("That GPU times are missing though they were requested is reported, with what helps") {
  SampleProgram program = repeating(5 * US, 20 * US, 1 * US);
  program.line(R"({"type":"gpu","op":"times","ts":1,"pid":7,"why":"CUPTI_ERROR_UNKNOWN"})");
  Verdict verdict(program);
  CHECK(verdict.ids() == "no_gpu_times host_bound");
  CHECK_THAT(verdict.text("no_gpu_times"), ContainsSubstring("CUPTI_ERROR_UNKNOWN."));
}

TEST_CASE("What was issued in a row is not judged without the wait at its end") {
  SampleProgram program = in_a_row(10, 5 * US, 20 * US);
  std::uint64_t issued_by = program.now;
  program.wait(5 * MS);
  auto ids_in = [&](Part part) {
    TraceText trace(program.text());
    Summary summary(trace.names(), {}, part);
    trace.show(summary, part);
    std::string ids;
    Json verdict = summary.json()["summary"]["verdict"];
    for (const Json& one : verdict) ids += one["id"].get<std::string>();
    return ids;
  };
  CHECK(ids_in({}) == "gpu_bound");
  CHECK(ids_in({0, program.now + 1}) == "gpu_bound");
  CHECK(ids_in({0, issued_by}).empty());
}

TEST_CASE("What comes after iterations that were issued in a row is no part of them") {
  SampleProgram program = in_a_row(10, 5 * US, 20 * US);
  program.load_code(5 * MS);
  program.launch("sum", 5 * US);
  program.wait(100 * US);
  Verdict verdict(program);
  REQUIRE(verdict.ids() == "host_bound");
  CHECK_THAT(verdict.text("host_bound"), ContainsSubstring("an iteration takes 12"));
}

TEST_CASE("Iterations in a row take as long as from one to the next, whatever follows the last") {
  SampleProgram program = in_a_row(4, 2 * MS, 18 * MS);
  program.load_code(500 * MS);
  program.launch("sum", 5 * US);
  program.wait(100 * US);
  Verdict verdict(program);
  REQUIRE(verdict.ids() == "host_bound");
  CHECK_THAT(verdict.text("host_bound"), ContainsSubstring("an iteration takes 100 ms"));
}

TEST_CASE("A trace may claim to have lost any number of events") {
  SampleProgram program = repeating(5 * US, 20 * US, 1 * US);
  Verdict verdict(program,
                  R"({"type":"end","ts":9,"losses":{"ring_full_entry":18446744073709551615,)"
                  R"("ring_full_return":18446744073709551615}})"
                  "\n");
  CHECK(verdict.text("incomplete") ==
        "18,446,744,073,709,551,615 of 18,446,744,073,709,551,615 events were lost (100.0 %). "
        "Figures "
        "may be too low.");
}
