#include "analyze/diff/difference.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;
using Verdict = Judgement::Verdict;

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

struct Compared {
  Difference difference;
  std::string page;
  Json json;
};

Compared compare(const std::string& lines_a, const std::string& lines_b,
                 const std::string& header_a = "", const std::string& header_b = "",
                 Kernels::By by = Kernels::By::name) {
  TraceText a(lines_a, header_a), b(lines_b, header_b);
  Measures of_a(a.names()), of_b(b.names());
  a.show(of_a);
  b.show(of_b);
  Compared compared{difference(of_a, of_b, by), {}, {}};
  compared.page = page_text([&](Page& page) { add_difference(page, compared.difference, 10); });
  compared.json = difference_json(compared.difference);
  return compared;
}

Durations times(std::initializer_list<std::uint64_t> ns, int each = 1) {
  Durations durations;
  for (int i = 0; i < each; i++)
    for (std::uint64_t one : ns) durations.add(one);
  return durations;
}

std::pair<std::uint64_t, std::uint64_t> total(const Difference& difference, std::string_view name) {
  for (const auto& of : difference.totals)
    if (of.name == name) return {of.a, of.b};
  return {~std::uint64_t{0}, 0};
}
using Both = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

TEST_CASE("Whether durations have changed") {
  auto steady = times({1000}, 100), a_tenth_more = times({1100}, 100);
  CHECK(judge(steady, a_tenth_more).verdict == Verdict::slower);
  CHECK(judge(a_tenth_more, steady).verdict == Verdict::faster);
  CHECK(judge(steady, a_tenth_more).change > 8);
  SECTION("not by little, however sure that is") {
    CHECK(judge(steady, times({1040}, 1000)).verdict == Verdict::same);
  }
  SECTION("not by what so widely spread ones differ by chance") {
    auto spread = times({500, 800, 1000, 1300, 2000}, 4);
    CHECK(judge(spread, times({550, 880, 1100, 1430, 2200}, 4)).verdict == Verdict::same);
    CHECK(
        judge(times({500, 800, 1000, 1300, 2000}, 1000), times({550, 880, 1100, 1430, 2200}, 1000))
            .verdict == Verdict::slower);
  }
  SECTION("not by a few long ones") {
    auto with_tail = times({1000}, 100);
    with_tail.add(times({50'000'000}, 3));
    CHECK(judge(steady, with_tail).verdict == Verdict::same);
  }
  SECTION("never from few calls, or none") {
    CHECK(judge(times({1000}, 9), times({5000}, 100)).verdict == Verdict::few);
    CHECK(judge(times({1000}, 10), times({5000}, 10)).verdict == Verdict::slower);
    CHECK(judge({}, steady).verdict == Verdict::not_timed);
  }
}

TEST_CASE("Functions: the largest change of the total first, new and missing ones") {
  std::string a, b;
  for (int i = 0; i < 20; i++) a += timed("cuEventQuery", 2), b += timed("cuEventQuery", 4);
  a += timed("cuInit", 100) + timed("cuOld", 7);
  b += timed("cuInit", 90) + timed("cuNew", 8) + timed("cuNew", 8);
  Compared compared = compare(a, b);
  const auto& functions = compared.difference.functions;
  REQUIRE(functions.size() == 4);
  CHECK(functions[0].name == "cuEventQuery");
  CHECK(functions[0].change() == 40'000);
  CHECK(functions[0].judgement.verdict == Verdict::slower);
  CHECK(functions[1].name == "cuNew");
  CHECK(functions[1].count_a == 0);
  CHECK(functions[1].count_b == 2);
  CHECK(functions[2].name == "cuInit");
  CHECK(functions[2].change() == -10'000);
  CHECK(functions[2].judgement.verdict == Verdict::few);
  CHECK(functions[3].name == "cuOld");
  CHECK(functions[3].count_b == 0);
  CHECK(total(compared.difference, "calls") == Both{22, 23});
  CHECK(total(compared.difference, "time in calls") == Both{147'000, 186'000});
  CHECK_THAT(compared.page, ContainsSubstring("functions only in A"));
  CHECK_THAT(compared.page, ContainsSubstring("functions only in B"));
  CHECK_THAT(compared.page, ContainsSubstring("+100.0 %"));
  CHECK(compared.json["functions"][1]["a"].is_null());
  CHECK(compared.json["functions"][0]["p50"] == "slower");
  CHECK(compared.json["functions"][2]["p50"] == "too few");
}

TEST_CASE("Kernels that are launched more or less often") {
  std::string a = launch("gemm(int)", 1) + launch("gemm(int)", 1) + launch("old(int)", 1) +
                  launch("like(int)", 1);
  std::string b = launch("gemm(int)", 1) + launch("gemm(int)", 2) + launch("new(int)", 1) +
                  launch("like(int)", 1) + launch("new(int)", 1);
  SECTION("by name") {
    Compared compared = compare(a, b);
    const auto& kernels = compared.difference.kernels;
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].name == "new");
    CHECK(kernels[0].b == 2);
    CHECK(kernels[1].name == "old");
    CHECK(kernels[1].a == 1);
    CHECK(total(compared.difference, "kernel launches") == Both{4, 5});
    CHECK(total(compared.difference, "different kernels") == Both{3, 3});
  }
  SECTION("by configuration") {
    auto kernels = compare(a, b, "", "", Kernels::By::configuration).difference.kernels;
    REQUIRE(kernels.size() == 4);
    CHECK(kernels[1].name == "gemm");
    CHECK(kernels[1].launch.grid[0] == 1);
    CHECK(kernels[1].a == 2);
    CHECK(kernels[1].b == 1);
    CHECK(kernels[2].launch.grid[0] == 2);
    CHECK(kernels[2].a == 0);
  }
  SECTION("their short names are told apart in both traces") {
    Compared compared =
        compare(launch("void each<n::Add>(int)", 1), launch("void each<n::Mul>(int)", 1));
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
  Compared compared = compare(a, b);
  CHECK(total(compared.difference, "transfers HtoD") == Both{2, 0});
  CHECK(total(compared.difference, "transfers HtoD, bytes") == Both{11, 0});
  CHECK(total(compared.difference, "transfers GPU 1 to GPU 0, bytes") == Both{9, 0});
  CHECK(total(compared.difference, "memory at its peak, device") == Both{1000, 2000});
  CHECK(total(compared.difference, "operations on the driver") == Both{1, 0});
  CHECK(total(compared.difference, "calls that failed") == Both{1, 2});
  REQUIRE(compared.difference.failures.size() == 2);
  CHECK(compared.difference.failures[0].error == "CUDA_ERROR_NO_DEVICE");
  CHECK(compared.difference.failures[0].b == 2);
  CHECK(compared.difference.failures[1].a == 1);
  CHECK(compared.difference.ioctls.empty());  // B has none to compare
  auto ioctls = compare(a, b + ioctl("memory") + ioctl("memory")).difference.ioctls;
  REQUIRE(ioctls.size() == 1);
  CHECK(ioctls[0].change() == 2000);
}

TEST_CASE("What was not taken alike is said first") {
  Compared compared = compare(
      "", "",
      R"(,"profile":"light","driver":null,"gpus":[{"name":"H200"}],"returns":true,"driver_traced":false)",
      R"(,"profile":"default","driver":"580","gpus":[{"name":"A100"}],"returns":true,"driver_traced":true,)"
      R"("driver_way":"driver_fentry")");
  std::vector<std::string> told;
  for (const auto& setting : compared.difference.settings)
    told.push_back(setting.what + ": " + setting.a + ", " + setting.b);
  CHECK(told == std::vector<std::string>{"profile: light, default", "driver traced: no, yes",
                                         "GPUs: H200, A100", "NVIDIA driver: , 580"});
  CHECK(compared.page.starts_with("not taken alike"));
  CHECK_THAT(compared.page, ContainsSubstring("only one of the profiles traces"));
  CHECK(compare("", "").difference.settings.empty());
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

const Difference::Total& one(const std::vector<Difference::Total>& all, std::string_view name) {
  for (const auto& of : all)
    if (of.name == name) return of;
  FAIL("no " << name);
  return all.front();
}

}  // namespace

TEST_CASE("Iterations, phases and idle times are compared") {
  Compared compared = compare(tokens(40, 100), tokens(40, 200, 3));
  const Difference& difference = compared.difference;
  CHECK(one(difference.iterations, "found").a == 40);
  CHECK(one(difference.iterations, "launches of each").a == 2);
  CHECK(one(difference.iterations, "launches of each").b == 3);
  const auto& p50 = one(difference.iterations, "p50");
  CHECK(p50.judgement.verdict == Verdict::slower);
  CHECK(p50.judgement.change > 95);
  CHECK(one(difference.iterations, "p99").b > 190'000);
  CHECK(one(difference.phases, "inference").b > one(difference.phases, "inference").a);
  const auto& idle = one(difference.totals, "GPU probably idle, of the time at work");
  CHECK(idle.b > idle.a);
  CHECK(idle.b < 1'000'000);
  CHECK_THAT(compared.page, ContainsSubstring("iterations") && ContainsSubstring(" points"));
  CHECK(compared.json["same"] == false);
  SECTION("also where one of the traces has none") {
    Compared with_none = compare(tokens(40, 100), timed("cuInit", 5));
    const auto& mean = one(with_none.difference.iterations, "mean");
    CHECK(mean.in_a);
    CHECK_FALSE(mean.in_b);
    CHECK(with_none.json["iterations"][0]["b"].is_null());
    CHECK_THAT(with_none.page, ContainsSubstring("gone"));
  }
}

TEST_CASE("That nothing differs is said") {
  std::string calls = tokens(5, 100) + timed("cuInit", 7);
  Compared alike = compare(calls, calls);
  CHECK(alike.difference.none());
  CHECK(alike.json["same"] == true);
  CHECK_THAT(alike.page, ContainsSubstring("No difference"));
  CHECK(alike.page.find("Δ") == std::string::npos);
  // The same number of calls and the same total, but other single times.
  CHECK_FALSE(
      compare(timed("cuInit", 7) + timed("cuInit", 9), timed("cuInit", 8) + timed("cuInit", 8))
          .difference.none());
  CHECK_FALSE(compare(calls, calls, R"(,"host":"a")", R"(,"host":"b")").difference.none());
}
