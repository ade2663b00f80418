#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "replay/times/times_compared.hpp"
#include "replay/times/times_page.hpp"
#include "sample_tape.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::replay;
using analyze::GpuOp;
using Catch::Approx;

namespace {

constexpr std::uint64_t US = 1000;

Manifest with_gemm() {
  Manifest manifest = sample_replay();
  manifest.kernels[1] = {"ampere_sgemm_128x64_nn", 0, {}, {}, std::nullopt};
  manifest.iteration.pid = 42;
  manifest.iteration.begin_ns = 100 * US;
  manifest.iteration.end_ns = 180 * US;
  return manifest;
}

ActualOperation ran(std::uint32_t launch, std::uint64_t begin_us, std::uint64_t end_us,
                    GpuOp op = GpuOp::kernel) {
  return {op, begin_us * US, end_us * US, launch};
}

IsolatedLaunch alone(std::uint32_t launch, std::uint64_t warm_us, std::uint64_t cold_us,
                     std::uint32_t launches = 1) {
  return {launch, IsolatedTime{{warm_us * US}, {cold_us * US}, {warm_us * US}, launches}};
}

bool says(const TimesCompared& times, std::string_view text) {
  for (const std::string& reason : times.reasons())
    if (reason.find(text) != std::string::npos) return true;
  return false;
}

// Two kernels, of which the first runs twice, and a copy.
struct Sample {
  Sample() : tape({launch_step(0, 1), launch_step(1, 1), launch_step(0, 1)}, with_gemm()) {
    REQUIRE(tape.tape);
  }
  TimesCompared compare(const std::vector<ActualOperation>& operations,
                        const std::vector<IsolatedLaunch>& isolated,
                        const std::optional<Timing>& full = {}) const {
    return compare_times({operations, 80 * US}, full, isolated, *tape.tape, tape.manifest);
  }
  SampleTape tape;
};

const std::vector<ActualOperation> ONE_BY_ONE = {ran(NONE, 100, 105, GpuOp::copy), ran(0, 110, 120),
                                                 ran(1, 120, 140), ran(0, 145, 157)};

}  // namespace

TEST_CASE("A program's time is compared with that of its tape and its kernels") {
  Timing full;
  full.runs_ns = {50 * US, 48 * US, 49 * US};
  auto times = Sample().compare(ONE_BY_ONE, {alone(0, 10, 14), alone(1, 22, 30)}, full);
  CHECK(times.busy_us == 47);
  CHECK(times.sum_us == 47);
  CHECK(times.span_us == 57);
  CHECK(times.wall_us == 80);
  CHECK(*times.full_us == 49);
  CHECK(times.predicted_us == 5 + 2 * 10 + 22);
  CHECK(times.predicted_cold_us == 5 + 2 * 14 + 30);
  CHECK(says(times, "nothing to do for 10.0 us (17.5 %)"));
  CHECK(says(times, "No operations overlapped."));
  CHECK(says(times, "1 copy or fill (5.0 us) are in the prediction"));
  CHECK_FALSE(says(times, "delay"));
}

TEST_CASE("A prediction has the launches' times after those that came before them") {
  IsolatedLaunch twice{0, IsolatedTime{{10 * US}, {14 * US}, {11 * US, 13 * US, 12 * US}, 1}};
  auto times = Sample().compare(ONE_BY_ONE, {twice, alone(1, 22, 30)});
  CHECK(times.predicted_us == 5 + 2 * 12 + 22);
  CHECK(times.predicted_warm_us == 5 + 2 * 10 + 22);
  CHECK(*times.launches[0].in_turn_us == 12);
}

TEST_CASE("Tiers are copies and fills, GEMM libraries, and everything else") {
  auto times = Sample().compare(ONE_BY_ONE, {alone(0, 10, 14), alone(1, 22, 30)});
  REQUIRE(times.tiers.size() == 3);
  CHECK(times.tiers[0].tier == "copies and fills");
  CHECK((times.tiers[0].unique_kernels == 0 && times.tiers[0].total_us == 5));
  CHECK_FALSE(times.tiers[0].error_percent);
  CHECK(times.tiers[1].tier == "GEMM libraries");
  CHECK((times.tiers[1].unique_kernels == 1 && times.tiers[1].total_us == 22));
  CHECK(*times.tiers[1].error_percent == Approx(10));
  CHECK((times.tiers[2].operations == 2 && times.tiers[2].actual_us == 22));
  Sample sample;
  auto json = times_json(times, sample.tape.manifest, *sample.tape.tape);
  CHECK(json["full_model_inference_us"].is_null());
  CHECK(json["tier_breakdown"][0]["error_percent"].is_null());
  CHECK(json["predicted_from_kernels_us"] == 47);
  CHECK(json["error_percent"] == 0);
}

TEST_CASE("Whether a launch took as long as from warm to cold is said launch by launch") {
  auto times = Sample().compare(
      {ran(0, 0, 10), ran(1, 10, 60), ran(0, 60, 72), ran(NONE, 20, 30, GpuOp::copy)},
      {alone(0, 11, 14, 8), alone(1, 22, 30)});
  REQUIRE(times.launches.size() == 2);
  const ComparedLaunch& gemm = times.launches[0];
  CHECK((gemm.launch == 1 && gemm.place == Place::slower && gemm.within == 0));
  CHECK(gemm.why() == "1 of 1 ran beside other operations, which slows both");
  CHECK(says(times, "1 launch was slower than cold: 0 took as long in turn"));
  CHECK(says(times, "in the cache that has to be written back; 1 ran beside other operations"));
  const ComparedLaunch& other = times.launches[1];
  CHECK((other.place == Place::within && other.median_us == 11 && other.within == 1));
  CHECK((times.judged == 3 && times.within == 1 && times.faster == 1 && times.slower == 1));
  CHECK(times.share_within() == Approx(100.0 / 3));
  CHECK(times.busy_us == 72);
  CHECK(says(times, "overlapped for 10.0 us"));
  CHECK(says(times, "the mean of launches that follow each other in a graph"));
}

TEST_CASE("A launch that is slower than cold may take as long in turn") {
  IsolatedLaunch timed{0, IsolatedTime{{2000}, {3000}, {5000}, 1}};
  auto times = Sample().compare({{GpuOp::kernel, 0, 5000, 0}}, {timed});
  CHECK(times.launches[0].place == Place::slower);
  CHECK(times.launches[0].why() ==
        "in turn it takes as long: perhaps what runs before it leaves data to be written back");
  CHECK(says(times, "1 launch was slower than cold: 1 took as long in turn"));
}

TEST_CASE("A launch that does less when run over and over has only a time in turn") {
  IsolatedTime timed{{2000}, {3000}, {5000}, 1};
  timed.does_less_again = true;
  auto times = Sample().compare({{GpuOp::kernel, 0, 5000, 0}}, {{0, timed}});
  const ComparedLaunch& launch = times.launches[0];
  CHECK((launch.place == Place::does_less_again && !launch.warm_us && !launch.cold_us));
  CHECK((times.judged == 0 && times.slower == 0));
  CHECK((times.predicted_us == 10 && times.predicted_warm_us == 10));
}

TEST_CASE("Times lie within warm and cold, give or take 5 % or half a microsecond") {
  auto place = [](std::uint64_t begin, std::uint64_t end, std::uint64_t warm, std::uint64_t cold) {
    IsolatedLaunch timed{0, IsolatedTime{{warm}, {cold}, {cold}, 1}};
    return Sample().compare({{GpuOp::kernel, begin, end, 0}}, {timed}).launches[0].place;
  };
  CHECK(place(0, 1500, 2000, 3000) == Place::within);
  CHECK(place(0, 1499, 2000, 3000) == Place::faster);
  CHECK(place(0, 3500, 2000, 3000) == Place::within);
  CHECK(place(0, 3501, 2000, 3000) == Place::slower);
  CHECK(place(0, 95000, 100000, 120000) == Place::within);
  CHECK(place(0, 94999, 100000, 120000) == Place::faster);
  CHECK(place(0, 2000, 3000, 1800) == Place::within);  // a cold launch may measure shorter
}

TEST_CASE("What was not timed by itself has the trace's own time") {
  auto times = Sample().compare(ONE_BY_ONE, {alone(0, 10, 14), {1, std::nullopt}});
  CHECK(times.predicted_us == 5 + 2 * 10 + 20);
  CHECK((times.not_timed == 1 && times.not_timed_us == 20 && times.judged == 2));
  CHECK(times.launches[1].place == Place::not_timed);
  CHECK(says(times, "1 launch (20.0 us) could not be timed"));
  auto nothing = Sample().compare({ran(0, 0, 10)}, {alone(0, 10, 14), alone(1, 22, 30)});
  CHECK(nothing.launches[1].place == Place::not_measured);
  CHECK(says(nothing, "The trace has no time of 2 launches"));
}

namespace {

std::string call_line(std::uint64_t id, std::string_view kernel, std::uint32_t pid = 42) {
  return fmt::format(
      R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1000,"duration_us":1.000,"pid":{},"tid":42,"ret":0,"kernel":"{}"}})"
      "\n",
      id, pid, kernel);
}

std::string gpu_line(std::uint64_t call, std::string_view more) {
  return fmt::format(
      R"({{"type":"gpu","op":"kernel","ts":2000,"duration_us":3.000,"pid":42,"call":{},"stream":"0x0","queue":7,{},"device":0}})"
      "\n",
      call, more);
}

const std::string ADD = R"-("kernel":"add(float*, float*)","grid":[1,1,1],"block":[32,1,1])-";

Result<ActualTimes> read(const std::string& lines, const std::string& header = "",
                         std::vector<bundle::Operation> operations = {}) {
  if (operations.empty()) operations = {launch_step(0, 1)};
  for (std::size_t i = 0; i < operations.size(); i++) operations[i].call = 5 + i;
  SampleTape sample(operations, with_gemm());
  REQUIRE(sample.tape);
  TraceText trace(lines, header);
  ActualTimesReader reader(*sample.tape, sample.manifest, trace.names());
  trace.show(reader);
  return reader.times(trace.facts());
}

}  // namespace

TEST_CASE("A trace's GPU times are those of the tape's calls") {
  auto times = read(call_line(4, "add(float*, float*)") + call_line(5, "add(float*, float*)") +
                    gpu_line(4, ADD) + gpu_line(5, ADD));
  REQUIRE(times);
  REQUIRE(times->operations.size() == 1);
  CHECK((times->operations[0].launch == 0 && times->operations[0].begin == 2000));
  CHECK(times->operations[0].end == 5000);
  CHECK(times->wall == 80 * US);
}

TEST_CASE("A graph's nodes are told by what they launch") {
  std::string launch =
      R"({"id":5,"type":"graph","op":"launch","name":"cuGraphLaunch","ts":1000,"duration_us":1.000,"pid":42,"tid":42,"ret":0})"
      "\n";
  auto times =
      read(launch + gpu_line(5, ADD) +
               gpu_line(5, R"-("kernel":"add(float*, float*)","grid":[3,1,1],"block":[32,1,1])-") +
               gpu_line(5, R"("kernel":"other","grid":[3,1,1],"block":[32,1,1])"),
           "", {graph_step({sample_launch_of(0, 3), sample_launch_of(0, 1)})});
  REQUIRE(times);
  REQUIRE(times->operations.size() == 3);
  CHECK(times->operations[0].launch == 1);
  CHECK(times->operations[1].launch == 0);
  CHECK(times->operations[2].launch == NONE);
  auto whole = read(launch + R"({"type":"gpu","op":"graph","ts":2000,"duration_us":3.000,"call":5})"
                             "\n",
                    "", {graph_step({sample_launch_of(0, 3)})});
  REQUIRE_FALSE(whole);
  CHECK(whole.error().hint == "record it with --gpu, not --gpu=graphs");
}

TEST_CASE("A trace that has not measured the capture is refused, with what to do") {
  auto refused = [](const std::string& lines, const std::string& header = "") {
    auto times = read(lines, header);
    return times ? "none" : times.error().message;
  };
  std::string call = call_line(5, "add(float*, float*)");
  CHECK(refused(call) == "the trace has no times of GPUs");
  CHECK(refused(call + gpu_line(4, ADD)) == "the trace has no GPU times of the calls on the tape");
  CHECK(refused(gpu_line(5, ADD)) == "1 of the 1 calls on the tape are not in the trace");
  CHECK(refused(call_line(5, "sub") + gpu_line(5, ADD)) ==
        "call 5 in the trace is one of sub, not of add(float*, float*)");
  CHECK(refused(call_line(5, "sub", 43) + gpu_line(5, ADD)) ==
        "call 5 in the trace is one of process 43, not of 42");
  std::string rest = call + gpu_line(5, ADD);
  CHECK(refused(rest, R"(,"gpus":[{"index":0,"name":"H100","uuid":"GPU-2"}])") ==
        "the trace is of H100, and the capture of Simulated H200");
  CHECK(refused(rest, R"(,"gpus":[{"index":0,"name":"Simulated H200","uuid":"GPU-2"}])") ==
        "the trace is of another Simulated H200 than the capture: GPU-2, not GPU-1");
  CHECK(refused(rest, R"(,"gpus":[{"index":0,"name":"Simulated H200","uuid":""}])") == "none");
  CHECK(refused(rest, R"(,"gpus":[{"index":1,"name":"Simulated H200","uuid":"GPU-1"}])") == "none");
}

TEST_CASE("A GPU is known by its UUID, however it is written") {
  Manifest manifest = with_gemm();
  manifest.devices[0].uuid = "8f3a0c1d5b6e4f708192a3b4c5d6e7f8";  // as the driver gives its bytes
  TraceHeader header;
  CHECK(why_other_gpu(header, manifest).empty());
  header.gpus = {{0, "Simulated H200", "GPU-8f3a0c1d-5b6e-4f70-8192-a3b4c5d6e7f8", ""}};
  CHECK(why_other_gpu(header, manifest).empty());
  header.gpus[0].uuid.back() = '9';
  CHECK_FALSE(why_other_gpu(header, manifest).empty());
  manifest.devices[0].name = "NVIDIA H200 MIG 1g.18gb";
  CHECK(why_other_gpu(header, manifest).empty());
}
