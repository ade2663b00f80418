#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyze/diff/conditions.hpp"
#include "analyze/diff/difference.hpp"
#include "analyze/questions/issued_gpu_time.hpp"
#include "support/gpu_operation_lines.hpp"
#include "support/graph_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

// Tokens of two launches and a wait, each 100 µs after the one before; its kernel takes `ns`.
std::string measured_tokens(int count, std::uint64_t ns, bool measured = true) {
  std::string lines, operations;
  for (int i = 0; i < count; i++) {
    int id = 3 * i + 1, ts = 100'000 * (i + 1);
    lines += kernel_launch(id, ts, "void gemm<float>(int)");
    lines += kernel_launch(id + 1, ts + 2000, "relu(int)");
    lines += fmt::format(
        R"({{"id":{},"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":{},"duration_us":50.000,"pid":1,"tid":1,"ret":0}})"
        "\n",
        id + 2, ts + 4000);
    auto begin = static_cast<std::uint64_t>(ts) + 5000;
    operations +=
        gpu_kernel(begin, ns, "void gemm<float>(int)", of_call(static_cast<std::uint64_t>(id)));
    operations +=
        gpu_kernel(begin + ns, 500, "relu(int)", of_call(static_cast<std::uint64_t>(id) + 1));
  }
  return lines + (measured ? operations : "");
}

struct Traces {
  TraceText text_a, text_b;
  Measures a{text_a.names()}, b{text_b.names()};

  Traces(const std::string& lines_a, const std::string& lines_b,
         const std::string& header_a = GPUS_MEASURED, const std::string& header_b = GPUS_MEASURED)
      : text_a(lines_a, header_a), text_b(lines_b, header_b) {
    text_a.show(a);
    text_b.show(b);
  }
  Difference difference() {
    return analyze::difference(side(a, {}), side(b, {}), Kernels::By::name);
  }
  Outcome judged(const std::string& text) {
    condition_ = *parse_condition(text);
    return judge(condition_, side(a, {condition_.asked}), side(b, {condition_.asked}));
  }

 private:
  static DiffSide side(const Measures& of, const std::vector<MeasurePart>& parts) {
    return {{figures_of(of, parts)}, &of};
  }
  Condition condition_;
};

const Compared* find(const std::vector<Compared>& all, std::string_view measure) {
  for (const Compared& one : all)
    if (one.asked.name() == measure) return &one;
  return nullptr;
}

using Is = Outcome::Is;

}  // namespace

TEST_CASE("Times on GPUs are compared where both traces have them") {
  Traces of(measured_tokens(20, 10'000), measured_tokens(20, 13'000));
  Difference difference = of.difference();
  REQUIRE(find(difference.totals, "gpu-time"));
  CHECK(find(difference.totals, "gpu-time")->a.figure == 20 * 10'500);
  CHECK(find(difference.totals, "gpu-time")->b.figure == 20 * 13'500);
  CHECK(find(difference.totals, "kernel-gpu-time")->a.figure == 5250);
  const Compared* iteration = find(difference.iterations, "iteration-gpu-time");
  REQUIRE(iteration);
  CHECK(iteration->a.figure == 10'500);
  CHECK(iteration->b.figure == 13'500);
  CHECK(iteration->judgement.verdict == Judgement::Verdict::slower);
  REQUIRE(difference.gpu_kernels.size() == 2);
  CHECK(difference.gpu_kernels[0].name == "gemm");
  CHECK(difference.gpu_kernels[0].full == "void gemm<float>(int)");
  CHECK(difference.gpu_kernels[0].change() == 20 * 3000);
  CHECK(difference.gpu_kernels[0].judgement.verdict == Judgement::Verdict::slower);
  CHECK(difference.gpu_kernels[1].change() == 0);
  CHECK(difference_json(difference)["gpu_kernels"][0]["name"] == "void gemm<float>(int)");
  CHECK_THAT(page_text([&](Page& page) { add_difference(page, difference, 10); }),
             ContainsSubstring("kernels, GPU time") && ContainsSubstring("+30.0 %"));

  CHECK(of.judged("gpu-time > +20 %").is == Is::holds);
  CHECK(of.judged("kernel-gpu-time:gemm > +20 %").is == Is::holds);
  CHECK(of.judged("kernel-gpu-time:relu > +0 ns").is == Is::does_not_hold);
  CHECK(of.judged("kernel-gpu-time:softmax > +0 ns").why == "A has no kernel softmax");
  CHECK(of.judged("iteration-gpu-time > +5 %").is == Is::holds);
  CHECK(of.judged("transfer-gpu-time > +0 ns").is == Is::does_not_hold);
}

TEST_CASE("What one trace lacks of GPUs is neither shown nor taken for zero") {
  Traces of(measured_tokens(20, 10'000), measured_tokens(20, 10'000, false), GPUS_MEASURED, "");
  Difference difference = of.difference();
  for (const char* measure : {"gpu-time", "kernel-gpu-time", "graph-gpu-time"})
    CHECK_FALSE(find(difference.totals, measure));
  CHECK_FALSE(find(difference.iterations, "iteration-gpu-time"));
  CHECK(difference.gpu_kernels.empty());
  CHECK_FALSE(difference_json(difference).contains("gpu_kernels"));
  CHECK(of.judged("gpu-time > +0 ns").why == "B has no times of GPUs");
  CHECK(of.judged("iteration-gpu-time > +0 ns").why ==
        "B has no iterations that were measured on a GPU");
  std::string copies =
      measured_tokens(4, 10) + gpu_operation("copy", 5, 70, R"(,"size":1,"direction":"HtoD")");
  CHECK(Traces(copies, measured_tokens(4, 10, false), GPUS_MEASURED, "")
            .judged("transfer-gpu-time:HtoD < -1 ns")
            .why == "B has no direction HtoD");
  CHECK(Traces(copies, measured_tokens(4, 10)).judged("transfer-gpu-time:HtoD < -1 ns").is ==
        Is::holds);
}

TEST_CASE(
    "Graphs that were measured otherwise cannot be compared, nor times beside a measurement") {
  Traces of(measured_tokens(20, 10'000), measured_tokens(20, 10'000), GPUS_MEASURED,
            R"(,"gpu_timing":"graphs")");
  CHECK_THAT(of.judged("gpu-time > +0 ns").why, ContainsSubstring("GPUs measured"));
  CHECK_THAT(of.judged("iteration-time > +5 %").why,
             ContainsSubstring("measuring GPUs takes time"));
  CHECK(of.judged("launches > +0").is == Is::does_not_hold);
}

TEST_CASE("GPUs' work that is missing makes their times uncertain") {
  auto doubt = [](const std::string& operations) {
    TraceText text(measured_tokens(4, 10), GPUS_MEASURED,
                   R"({"type":"end","ts":9000000,"duration_ns":9000000,"gpu_operations":)" +
                       operations + "}\n");
    Measures measures(text.names());
    text.show(measures);
    TraceFigures figures = figures_of(measures, {});
    CHECK_FALSE(figures.doubt(Need::launches));
    return figures.doubt(Need::gpu_times) != nullptr;
  };
  CHECK_FALSE(doubt(R"({"operations":8,"invalid":0,"unjoined":{"no_call":3,"no_work":2}})"));
  CHECK(doubt(R"({"operations":8,"invalid":1,"unjoined":{}})"));
  CHECK(doubt(R"({"operations":8,"unjoined":{"not_reported":1}})"));
  CHECK(doubt(R"({"operations":8,"unjoined":{"lost":1}})"));
  CHECK_FALSE(doubt("7"));
  CHECK_FALSE(doubt(R"({"unjoined":[1,2]})"));
}

TEST_CASE("What a thread issued to GPUs, by when it issued it") {
  std::string lines;
  for (int i = 0; i < 40; i++) lines += kernel_launch(i + 1, 1000 * i, "k(int)");
  lines += kernel_launch(90, 1500, "k(int)", R"(,"tid":2)");
  for (std::uint64_t id = 40; id > 0; id--) lines += gpu_kernel(90'000, id, "k(int)", of_call(id));
  lines += gpu_kernel(5, 100'000, "k(int)", of_call(90)) + gpu_kernel(5, 7, "k(int)", "");
  auto sums = [&](std::size_t most) {
    TraceText text(lines, GPUS_MEASURED);
    IssuedGpuTime times(most);
    text.show(times);
    return std::tuple(times.between(1, 1, 0, 40'000), times.between(1, 1, 2000, 4000),
                      times.between(1, 1, 4000, 2000), times.between(1, 9, 0, 40'000),
                      times.between(2, 1, 0, 40'000));
  };
  CHECK(sums(1000) == std::tuple(820 + 0, 3 + 4, 0, 0, 0));
  auto [all, some, backwards, no_thread, nowhere] = sums(8);
  CHECK(all == 820);  // none is lost when two become one
  CHECK(backwards + no_thread + nowhere == 0);
}

TEST_CASE("Absurd times of GPUs add up to the largest value") {
  constexpr std::uint64_t LONG = std::numeric_limits<std::int64_t>::max() / 1000 / 1000 * 1000;
  std::string operations;
  for (std::uint64_t id : {1, 4, 7, 10})
    operations += gpu_kernel(1, LONG * 900, "k(int)", of_call(id));
  Traces of(measured_tokens(4, 10) + operations + operations + operations, measured_tokens(4, 10));
  Difference difference = of.difference();
  CHECK_FALSE(page_text([&](Page& page) { add_difference(page, difference, 10); }).empty());
  CHECK_FALSE(difference_json(difference).empty());
}
