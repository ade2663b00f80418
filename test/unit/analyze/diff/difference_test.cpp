#include "analyze/diff/difference.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/graph_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string call(const std::string& type, const std::string& op, const std::string& name,
                 const std::string& more) {
  static int id = 0;
  return R"({"id":)" + std::to_string(++id) + R"(,"type":")" + type + R"(","op":")" + op +
         R"(","name":")" + name + R"(","ts":10,"pid":7,"tid":7)" + more + "}\n";
}
std::string timed(const std::string& name, int us) {
  return call("event", "query", name,
              R"(,"duration_us":)" + std::to_string(us) + R"(.000,"ret":0)");
}
std::string launch(const std::string& kernel, int grid) {
  return call("kernel", "launch", "cuLaunchKernel",
              R"(,"duration_us":1.000,"ret":0,"stream":"0x0","kernel":")" + kernel +
                  R"(","grid":[)" + std::to_string(grid) + R"(,1,1],"block":[32,1,1],"shared":0)");
}

struct Answer {
  Difference difference;
  std::string page;
  Json json;
};

Answer answer_of(const std::string& lines_a, const std::string& lines_b,
                 const std::string& header_a = "", const std::string& header_b = "",
                 Kernels::By by = Kernels::By::name) {
  TraceText a(lines_a, header_a), b(lines_b, header_b);
  Measures of_a(a.names()), of_b(b.names());
  a.show(of_a);
  b.show(of_b);
  Answer answer{
      difference({{figures_of(of_a, {})}, &of_a}, {{figures_of(of_b, {})}, &of_b}, by), {}, {}};
  answer.page = page_text([&](Page& page) { add_difference(page, answer.difference, 10); });
  answer.json = difference_json(answer.difference);
  return answer;
}

std::pair<double, double> total(const Difference& difference, std::string_view measure) {
  for (const auto& of : difference.totals)
    if (of.asked.name() == measure) return {of.a.figure, of.b.figure};
  return {-1, -1};
}
using Both = std::pair<double, double>;

}  // namespace

TEST_CASE("Functions: the largest change of the total first, new and missing ones") {
  std::string a, b;
  for (int i = 0; i < 20; i++) a += timed("cuEventQuery", 2), b += timed("cuEventQuery", 4);
  a += timed("cuInit", 100) + timed("cuOld", 7);
  b += timed("cuInit", 90) + timed("cuNew", 8) + timed("cuNew", 8);
  Answer compared = answer_of(a, b);
  const auto& functions = compared.difference.functions;
  REQUIRE(functions.size() == 4);
  CHECK(functions[0].name == "cuEventQuery");
  CHECK(functions[0].change() == 40'000);
  CHECK(functions[0].judgement.verdict == Judgement::Verdict::slower);
  CHECK(functions[1].name == "cuNew");
  CHECK(functions[1].count_a == 0);
  CHECK(functions[1].count_b == 2);
  CHECK(functions[2].name == "cuInit");
  CHECK(functions[2].change() == -10'000);
  CHECK(functions[2].judgement.verdict == Judgement::Verdict::few);
  CHECK(functions[3].name == "cuOld");
  CHECK(functions[3].count_b == 0);
  CHECK(total(compared.difference, "calls") == Both{22, 23});
  CHECK(total(compared.difference, "time-in-calls") == Both{147'000, 186'000});
  CHECK_THAT(compared.page, ContainsSubstring("functions only in A"));
  CHECK_THAT(compared.page, ContainsSubstring("functions only in B"));
  CHECK_THAT(compared.page, ContainsSubstring("+100.0 %"));
  CHECK(compared.json["functions"][1]["a"].is_null());
  CHECK(compared.json["functions"][0]["p50"] == "slower");
  CHECK(compared.json["functions"][2]["p50"] == "too few");
}

TEST_CASE("Kernels that run more or less often, in graphs too") {
  auto lines_of = [](const char* count) {
    return content_line(1, 9, 9, kernel_nodes("gemm(int)", count)) +
           graph_launch(1, 10, of_graph(1)) + graph_launch(2, 20, of_graph(1)) +
           kernel_launch(3, 30, "gemm(int)") +
           kernel_launch(4, 40, "old(int)", R"(,"captured":true)");
  };
  Answer compared = answer_of(lines_of("9"), lines_of("10"));
  REQUIRE(compared.difference.kernels.size() == 1);
  CHECK(compared.difference.kernels[0].a == 19);
  CHECK(compared.difference.kernels[0].b == 21);
  CHECK(total(compared.difference, "launches") == Both{3, 3});
  CHECK(total(compared.difference, "kernel-runs") == Both{19, 21});
  // Where every launch is one run, a row about runs would only repeat that about launches.
  CHECK(total(answer_of(launch("a", 1), launch("b", 1)).difference, "kernel-runs") == Both{-1, -1});
}

TEST_CASE("Kernels that are launched more or less often") {
  std::string a = launch("gemm(int)", 1) + launch("gemm(int)", 1) + launch("old(int)", 1) +
                  launch("like(int)", 1);
  std::string b = launch("gemm(int)", 1) + launch("gemm(int)", 2) + launch("new(int)", 1) +
                  launch("like(int)", 1) + launch("new(int)", 1);
  SECTION("by name") {
    Answer compared = answer_of(a, b);
    const auto& kernels = compared.difference.kernels;
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].name == "new");
    CHECK(kernels[0].b == 2);
    CHECK(kernels[1].name == "old");
    CHECK(kernels[1].a == 1);
    CHECK(total(compared.difference, "launches") == Both{4, 5});
    CHECK(total(compared.difference, "kernels") == Both{3, 3});
  }
  SECTION("by configuration") {
    auto kernels = answer_of(a, b, "", "", Kernels::By::configuration).difference.kernels;
    REQUIRE(kernels.size() == 4);
    CHECK(kernels[1].name == "gemm");
    CHECK(kernels[1].launch.grid[0] == 1);
    CHECK(kernels[1].a == 2);
    CHECK(kernels[1].b == 1);
    CHECK(kernels[2].launch.grid[0] == 2);
    CHECK(kernels[2].a == 0);
  }
  SECTION("their short names are distinguished in both traces") {
    Answer compared =
        answer_of(launch("void each<n::Add>(int)", 1), launch("void each<n::Mul>(int)", 1));
    CHECK_THAT(compared.page, ContainsSubstring("each<Add>"));
    CHECK_THAT(compared.page, ContainsSubstring("each<Mul>"));
  }
}

TEST_CASE("Transfers, memory, errors and ioctls") {
  auto transfer = [](int size, int ret = 0) {
    return call("transfer", "HtoD", "cuMemcpyHtoD",
                R"(,"duration_us":1.000,"ret":)" + std::to_string(ret) + R"(,"size":)" +
                    std::to_string(size));
  };
  auto memory = [](const std::string& op, const std::string& address) {
    return call(
        "memory", op, "cuMem",
        R"(,"duration_us":1.000,"ret":0,"size":1000,"ptr":")" + address + R"(","kind":"device")");
  };
  auto ioctl = [](const std::string& group) {
    return R"({"type":"kernel","op":"ioctl","name":"X","ts":1,"duration_us":2.000,"pid":7,)"
           R"("tid":7,"ret":0,"group":")" +
           group + "\"}\n";
  };
  std::string failure = call("init", "init", "cuInit",
                             R"(,"duration_us":1.000,"ret":100,"error":"CUDA_ERROR_NO_DEVICE")");
  std::string to_other_gpu =
      call("transfer", "DtoD", "cuMemcpyDtoD",
           R"(,"duration_us":1.000,"ret":0,"size":9,"src_device":1,"dst_device":0)");
  std::string a = to_other_gpu + transfer(5) + transfer(6) + transfer(7, 1) +
                  memory("alloc", "0x10") + memory("free", "0x10") + memory("alloc", "0x10") +
                  ioctl("memory");
  std::string b = memory("alloc", "0x10") + memory("alloc", "0x20") + failure + failure;
  Answer compared = answer_of(a, b);
  CHECK(total(compared.difference, "transfers:HtoD") == Both{2, 0});
  CHECK(total(compared.difference, "transfer-bytes:HtoD") == Both{11, 0});
  CHECK(total(compared.difference, "transfer-bytes:GPU 1 to GPU 0") == Both{9, 0});
  CHECK(total(compared.difference, "memory-peak") == Both{1000, 2000});
  CHECK(total(compared.difference, "operations") == Both{1, 0});
  CHECK(total(compared.difference, "failed-calls") == Both{1, 2});
  REQUIRE(compared.difference.failures.size() == 2);
  CHECK(compared.difference.failures[0].error == "CUDA_ERROR_NO_DEVICE");
  CHECK(compared.difference.failures[0].b == 2);
  CHECK(compared.difference.failures[1].a == 1);
  CHECK(compared.difference.ioctls.empty());  // B has none to compare
  auto ioctls = answer_of(a, b + ioctl("memory") + ioctl("memory")).difference.ioctls;
  REQUIRE(ioctls.size() == 1);
  CHECK(ioctls[0].change() == 2000);
}

TEST_CASE("Settings that differ come first") {
  Answer compared = answer_of(
      "", "",
      R"(,"profile":"light","driver":null,"gpus":[{"name":"H200"}],"returns":true,"driver_traced":false)",
      R"(,"profile":"default","driver":"580","gpus":[{"name":"A100"}],"returns":true,"driver_traced":true,)"
      R"("driver_way":"driver_fentry")");
  std::vector<std::string> settings;
  for (const auto& setting : compared.difference.settings)
    settings.push_back(std::string(setting.what) + ": " + setting.a + ", " + setting.b);
  CHECK(settings == std::vector<std::string>{"profile: light, default", "driver traced: no, yes",
                                             "GPUs: H200, A100", "NVIDIA driver: , 580"});
  CHECK(compared.page.starts_with("recorded differently"));
  CHECK_THAT(compared.page, ContainsSubstring("only one of the profiles traces"));
  CHECK(answer_of("", "").difference.settings.empty());
}

namespace {

// That many tokens of two kernels and a wait, each of them `us` long.
std::string tokens(int count, int us, int launches = 2) {
  std::string text;
  auto line = [&](int at, const std::string& fields, int duration) {
    static int id = 100'000;
    text += R"({"id":)" + std::to_string(++id) + R"(,"ts":)" + std::to_string(at * 1000) +
            R"(,"pid":7,"tid":7,"duration_us":)" + std::to_string(duration) + R"(.000,"ret":0,)" +
            fields + "}\n";
  };
  for (int i = 0; i < count; i++) {
    int at = 10 + i * us;
    for (int j = 0; j < launches; j++)
      line(at + j * 10,
           R"("type":"kernel","op":"launch","name":"cuLaunchKernel","stream":"0x0","kernel":")" +
               std::string(j ? "b" : "a") + R"(","grid":[1,1,1],"block":[1,1,1],"shared":0)",
           2);
    line(at + launches * 10, R"("type":"sync","op":"ctx","name":"cuCtxSynchronize")", 5);
  }
  return text;
}

const Compared& one(const std::vector<Compared>& all, std::string_view measure) {
  for (const auto& of : all)
    if (of.asked.name() == measure) return of;
  FAIL("no " << measure);
  return all.front();
}

}  // namespace

TEST_CASE("Iterations, phases and idle times are compared") {
  Answer compared = answer_of(tokens(40, 100), tokens(40, 200, 3));
  const Difference& difference = compared.difference;
  CHECK(one(difference.iterations, "iterations").a.figure == 40);
  CHECK(one(difference.iterations, "launches-per-iteration").a.figure == 2);
  CHECK(one(difference.iterations, "launches-per-iteration").b.figure == 3);
  const auto& p50 = one(difference.iterations, "iteration-time");
  CHECK(p50.a.figure == 100'000);  // exactly, not as a histogram has it
  CHECK(p50.b.figure == 200'000);
  CHECK(p50.judgement.verdict == Judgement::Verdict::slower);
  CHECK(p50.judgement.change == 100);
  CHECK(p50.noise == Noise::beyond);
  CHECK(one(difference.iterations, "iteration-p99").b.figure == 200'000);
  const auto& inference = one(difference.phases, "phase-time:inference");
  CHECK(inference.b.figure > inference.a.figure);
  const auto& idle = one(difference.totals, "idle");
  CHECK(idle.b.figure > idle.a.figure);
  CHECK(idle.b.figure < 1'000'000);
  CHECK_THAT(compared.page, ContainsSubstring("iterations") && ContainsSubstring(" points"));
  CHECK(compared.json["same"] == false);
  CHECK(compared.json["iterations"][3]["measure"] == "iteration-time");
  CHECK(compared.json["iterations"][3]["a"] == 100.0);
  SECTION("also where one of the traces has none") {
    Answer with_none = answer_of(tokens(40, 100), timed("cuInit", 5));
    const auto& mean = one(with_none.difference.iterations, "iteration-mean");
    CHECK(mean.a.known == 1);
    CHECK(mean.b.known == 0);
    CHECK(with_none.json["iterations"][0]["b"].is_null());
    CHECK_THAT(with_none.page, ContainsSubstring("gone"));
  }
}

TEST_CASE("A change beyond all measure is not shown to the percent") {
  Answer absurd = answer_of(timed("cuInit", 1), timed("cuInit", 100'000'000));
  CHECK_THAT(absurd.page, ContainsSubstring("over 1,000,000 ×"));
}

TEST_CASE("First comes which side is faster, by an iteration where there are any") {
  Answer slower = answer_of(tokens(40, 100), tokens(40, 400));
  const Json& verdict = slower.json["verdict"];
  CHECK(verdict["id"] == "slower");
  CHECK(verdict["measure"] == "iteration-time");
  CHECK(verdict["times"].get<double>() > 2);
  CHECK_THAT(
      slower.page,
      ContainsSubstring("\nIterations take 4.0 × as long in B: 400 µs in B, 100 µs in A, p50; "));
  CHECK(slower.json["iterations_begin"]["a_us"].is_number());
  CHECK(verdict["title"] == "Iterations take 4.0 × as long in B");
  Json faster = answer_of(tokens(40, 400), tokens(40, 100)).json["verdict"];
  CHECK(faster["id"] == "faster");
  CHECK(faster["title"] == "Iterations take 75.0 % less time in B");
  Answer other = answer_of(tokens(40, 100), timed("cuInit", 5));
  CHECK(other.json["verdict"].is_null());  // the traces are equally long
  CHECK(other.json["iterations_begin"]["b_us"].is_null());
}

TEST_CASE("Only the same is reported to be the same") {
  CHECK(change_text(5, 5) == "=");
  CHECK(change_text(100'000, 100'001) == "~");
  CHECK(change_text(10, 12.5) == "+25.0 %");
  CHECK(change_text(10, 20) == "+100.0 %");
  CHECK(change_text(10, 37) == "3.7 ×");
  CHECK(change_text(10, 3883) == "388 ×");
  CHECK(change_text(1, 38'827) == "38,827 ×");
  CHECK(change_text(10, 2.7) == "-73.0 %");
  CHECK(change_text(4 << 20, 192) == "under 1/1,000");
  Judgement unclear{Judgement::Verdict::unclear, 79};
  CHECK(change_text(unclear) == "~");
  CHECK(change_text(Judgement{Judgement::Verdict::same, 0}) == "=");
}

TEST_CASE("A message says that nothing differs") {
  std::string calls = tokens(5, 100) + timed("cuInit", 7);
  Answer alike = answer_of(calls, calls);
  CHECK(alike.difference.none());
  CHECK(alike.json["same"] == true);
  CHECK_THAT(alike.page, ContainsSubstring("No difference"));
  CHECK(alike.page.find("Δ") == std::string::npos);
  // The same number of calls and the same total, but other single times.
  CHECK_FALSE(
      answer_of(timed("cuInit", 7) + timed("cuInit", 9), timed("cuInit", 8) + timed("cuInit", 8))
          .difference.none());
  CHECK_FALSE(answer_of(calls, calls, R"(,"host":"a")", R"(,"host":"b")").difference.none());
}
