#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/products/peaks.hpp"
#include "analyze/products/products.hpp"
#include "support/analyzing.hpp"
#include "trace/header.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

const std::string NVJET = "nvjet_sm90_hsh_128x64_64x4_1x1_v_bz_TNT";

// Lines of a program that multiplies, on one stream, with the GPU's times.
struct Multiplied {
  std::string text = R"({"type":"gpu","op":"times","ts":1,"pid":1,"cupti":"13.0.1"})"
                     "\n";
  std::uint64_t id = 0, ts = 10;

  static std::string quoted(std::string_view word) { return "\"" + std::string(word) + "\""; }
  std::uint64_t launch(std::uint64_t within, const std::string& kernel,
                       const std::string& more = "", const std::string& grid = "[2,1,1]") {
    text += R"({"id":)" + std::to_string(++id) +
            R"(,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":)" +
            std::to_string(ts += 10) + R"(,"duration_us":0.001,"pid":1,"tid":1,"ret":0,)" +
            (within ? R"("within":)" + std::to_string(within) + "," : "") +
            R"("stream":"0x1","async":true,"kernel":)" + quoted(kernel) + R"(,"grid":)" + grid +
            more + "}\n";
    return id;
  }
  void product(std::uint64_t own, std::uint64_t m, const std::string& more = "") {
    text +=
        R"({"id":)" + std::to_string(own) +
        R"(,"type":"product","op":"gemm","name":"cublasGemmEx","library":"cublas","layer":1,"ts":)" +
        std::to_string(ts) + R"(,"duration_us":0.005,"pid":1,"tid":1,"ret":0,"m":)" +
        std::to_string(m) +
        R"(,"n":64,"k":1024,"batch":1,"trans":"tn","types":"bfloat16,bfloat16,bfloat16","compute":"32f")" +
        more + "}\n";
  }
  void ran(std::uint64_t call, const std::string& kernel, std::uint64_t us,
           const std::string& more = "", const std::string& grid = "[2,1,1]") {
    text += R"({"type":"gpu","op":"kernel","ts":)" + std::to_string(ts += 10) +
            R"(,"duration_us":)" + std::to_string(us) + R"(.000,"pid":1,"call":)" +
            std::to_string(call) + R"(,"kernel":)" + quoted(kernel) + R"(,"grid":)" + grid + more +
            "}\n";
  }
  Json answer(const char* gpu = "NVIDIA H200") const {
    LineParser parser;
    MatrixProducts products(parser.names());
    auto derived = each_line(parser, text, [&](const Line& line) { products.line(line); });
    TraceFacts facts;
    facts.header.shapes = true;
    facts.header.gpus = {{0, gpu, "", ""}};
    products.finish(facts);
    return products_json(products);
  }
};

}  // namespace

TEST_CASE("A product has the kernels that it launched, and those that a part of it launched") {
  Multiplied program;
  program.id = 2;
  std::uint64_t whole = 1, part = 2;
  std::uint64_t first = program.launch(part, NVJET), second = program.launch(whole, "reduce");
  program.product(part, 256, R"(,"parent":1)");
  program.product(whole, 256);
  program.ran(first, NVJET, 10);
  program.ran(second, "reduce", 2);
  Json json = program.answer();
  REQUIRE(json["products"].size() == 1);
  const Json& row = json["products"][0];
  CHECK(row["count"] == 1);
  CHECK(row["timed"] == 1);
  CHECK(row["gpu_us"] == 12);
  CHECK(row["kernels"] == Json({NVJET, "reduce"}));
  CHECK(row["tflops"] == 2.796);  // 2 · 256 · 64 · 1024 in 12 µs
  CHECK(row["bound"] == "memory");
  CHECK(row["roof_percent"] == 1.195);  // (256 · 1024 + 1024 · 64 + 256 · 64) · 2 bytes in 12 µs
  CHECK(row["torch"] ==
        "torch.mm(torch.randn(64, 1024, device='cuda', dtype=torch.bfloat16), torch.randn(256, "
        "1024, device='cuda', dtype=torch.bfloat16).mT)");
  CHECK(json["tiles_agree"] == 1);
  CHECK(json["without_kernel"] == 0);
}

TEST_CASE("What came faster than a GPU can do has no share, nor has a GPU that is not known") {
  Multiplied program;
  program.id = 1;
  std::uint64_t launch = program.launch(1, NVJET, "", "[4096,1,1]");
  program.product(1, 1 << 20);
  program.ran(launch, NVJET, 1, "", "[4096,1,1]");
  CHECK_FALSE(program.answer()["products"][0].contains("roof_percent"));
  CHECK(program.answer()["products"][0]["bound"] == "memory");
  CHECK_FALSE(program.answer("NVIDIA T4")["products"][0].contains("bound"));
  CHECK_FALSE(program.answer("NVIDIA T4").contains("peaks"));
}

TEST_CASE("Kernels that multiply and belong to no product are counted") {
  Multiplied program;
  program.ran(program.launch(0, NVJET), NVJET, 3);
  program.ran(program.launch(0, "softmax"), "softmax", 3);
  program.ran(77, NVJET, 4);
  Json json = program.answer();
  CHECK(json["products"].empty());
  CHECK(json["kernels_without_product"] == 2);
  CHECK(json["kernels_without_product_us"] == 7);
}

TEST_CASE("What has no shape, what failed, and what has no kernel is counted") {
  Multiplied program;
  program.product(++program.id, 256);
  program.text +=
      R"({"id":2,"type":"product","op":"matmul","name":"cublasLtMatmul","library":"cublaslt","layer":1,"ts":90,"duration_us":1.000,"pid":1,"tid":1,"ret":0,"shape_unknown":"descriptors"}
{"id":3,"type":"product","op":"matmul","name":"cublasLtMatmul","library":"cublaslt","layer":1,"ts":99,"duration_us":1.000,"pid":1,"tid":1,"ret":7,"m":1,"n":1,"k":1,"batch":1,"trans":"nn"}
)";
  program.ran(program.launch(0, "softmax"), "softmax", 3);
  Json json = program.answer();
  CHECK(json["products"].size() == 1);
  CHECK(json["without_shape"] == Json({{"descriptors", 1}}));
  CHECK(json["failed"] == 1);
  CHECK(json["without_kernel"] == 1);
}

TEST_CASE("Captured products run at each launch of their graph, in the order of its nodes") {
  Multiplied program;
  const std::string captured = R"(,"captured":true)";
  program.id = 2;
  program.launch(1, NVJET, captured);
  program.product(1, 256, captured);
  program.launch(2, NVJET, captured);
  program.product(2, 128, captured);
  program.text +=
      R"({"type":"graph","op":"content","ts":80,"pid":1,"graph":1,"nodes":2,"kernels":2,"content":[{"op":"kernel","count":2,"kernel":")" +
      NVJET + R"(","grid":[2,1,1],"block":[1,1,1],"shared":0}],"products":[1,2]}
)";
  program.ts = 100;
  auto replay = [&](std::initializer_list<std::pair<const char*, std::uint64_t>> nodes) {
    program.text +=
        R"({"id":)" + std::to_string(++program.id) +
        R"(,"type":"graph","op":"launch","name":"cuGraphLaunch","ts":)" +
        std::to_string(program.ts += 10) +
        R"(,"duration_us":0.001,"pid":1,"tid":1,"ret":0,"stream":"0x1","async":true,"graph":1,"nodes":2,"kernels":2}
)";
    std::uint64_t call = program.id;
    for (auto [node, us] : nodes) program.ran(call, NVJET, us, R"(,"node":)" + std::string(node));
  };
  replay({{"41", 5}, {"40", 9}});
  replay({{"40", 9}, {"41", 5}});
  Json json = program.answer();
  REQUIRE(json["products"].size() == 2);
  CHECK(json["products"][0]["m"] == 256);
  CHECK(json["products"][0]["gpu_us"] == 18);
  CHECK(json["products"][0]["in_graphs"] == 2);
  CHECK(json["products"][0]["timed"] == 2);
  CHECK(json["products"][1]["gpu_us"] == 10);
  CHECK(json["ambiguous_kernels"] == 0);
  // Another instance of the graph has nodes of its own: it is not known which are which.
  replay({{"50", 9}, {"51", 5}});
  json = program.answer();
  CHECK(json["ambiguous_kernels"] == 6);
  CHECK(json["products"][0]["gpu_us"] == 0);
}

TEST_CASE("Peaks are those of the type that is multiplied") {
  const Peaks* h200 = peaks_of("NVIDIA H200");
  REQUIRE(h200);
  CHECK(h200->of("bfloat16", "32f") == 989.4);
  CHECK(h200->of("float8_e4m3", "32f") == 1978.9);
  CHECK(h200->of("float32", "32f_fast_tf32") == 494.7);
  CHECK(h200->of("float32", "32f") == 67);
  CHECK(h200->of("float32", "") == 0);
  CHECK(h200->of("float4_e2m1", "32f") == 0);
  CHECK(peaks_of("NVIDIA H100 80GB HBM3")->bandwidth == 3352);
  CHECK(peaks_of("NVIDIA H100 PCIe")->half == 756);
  CHECK(peaks_of("NVIDIA L40S")->half == 362);
  CHECK(peaks_of("NVIDIA A100-SXM4-40GB")->bandwidth == 1555);
  CHECK_FALSE(peaks_of("NVIDIA L40"));
  CHECK_FALSE(peaks_of("Tesla T4"));
}

namespace {

// 1,000 products of 1024 x 1024 x 1024 within 0.1 s: 2.17 ms of an H200's tensor cores, 1.31 ms of
// its memory.
struct CountedProducts : Multiplied {
  explicit CountedProducts(int count = 1000) {
    for (int i = 0; i < count; i++) {
      std::uint64_t own = ++id, launched = launch(own, NVJET);
      text += R"({"id":)" + std::to_string(own) +
              R"(,"type":"product","op":"gemm","name":"cublasGemmEx","library":"cublas","layer":1,)"
              R"("ts":5,"duration_us":0.005,"pid":1,"tid":1,"ret":0,"m":1024,"n":1024,"k":1024,)"
              R"("batch":1,"trans":"tn","types":"bfloat16,bfloat16,bfloat16","compute":"32f"})"
              "\n";
      text += R"({"type":"gpu","op":"kernel","ts":)" + std::to_string(200'000'000 + i * 100'000) +
              R"(,"duration_us":2.000,"pid":1,"call":)" + std::to_string(launched) +
              R"(,"kernel":)" + quoted(NVJET) + R"(,"grid":[2,1,1]})" + "\n";
    }
  }
  void sample(std::uint64_t ms, double tensor, double dram, int gpu = 0) {
    text += R"({"type":"gpu","op":"sample","ts":)" + std::to_string(ms * 1'000'000) + R"(,"gpu":)" +
            std::to_string(gpu) + R"(,"window_ms":100.0,"tensor_active":)" +
            std::to_string(tensor) + R"(,"dram_active":)" + std::to_string(dram) + "}\n";
  }
};

}  // namespace

TEST_CASE("What products need is held against the GPU's own counters") {
  CountedProducts program;
  program.sample(100, 50, 50);  // before
  program.sample(200, 0, 0);
  program.sample(300, 1.0, 1.0);
  program.sample(400, 2.0, 1.0);  // the counters are behind
  program.sample(500, 0, 0);
  program.sample(600, 50, 50);  // afterwards
  Json json = program.answer()["counters"];
  CHECK(json["tensor"]["counted_us"] == 3000);
  CHECK(json["tensor"]["needed_us"] == 2170.491);
  CHECK(json["tensor"]["contradicted"] == false);
  CHECK(json["memory"]["counted_us"] == 2000);
  CHECK(json["memory"]["needed_us"] == 1310.72);
  CHECK(json["memory"]["doubt_us"] == 150);
}

TEST_CASE("Products that need more than was counted are contradicted") {
  CountedProducts program(2000);  // as if each had been counted twice
  for (int ms = 300; ms <= 700; ms += 100) program.sample(ms, 0.8, 0.9);
  Json json = program.answer()["counters"];
  CHECK(json["tensor"]["contradicted"] == true);
  CHECK(json["memory"]["contradicted"] == false);
}

TEST_CASE("Counters say nothing of several GPUs, of times without samples, and by rounding") {
  SECTION("several GPUs") {
    CountedProducts program;
    for (int ms = 100; ms <= 600; ms += 100) program.sample(ms, 3, 3, ms > 300);
    CHECK_FALSE(program.answer().contains("counters"));
  }
  SECTION("a sample is missing") {
    CountedProducts program;
    for (int ms : {200, 300, 500, 600}) program.sample(ms, 3, 3);
    CHECK_FALSE(program.answer().contains("counters"));
  }
  SECTION("what is less than rounding") {
    CountedProducts program;
    for (int ms = 100; ms <= 600; ms += 100) program.sample(ms, 0.1, 0.1);
    CHECK(program.answer()["counters"]["tensor"]["contradicted"] == false);
  }
  SECTION("the samples end while products run: those before count") {
    CountedProducts program;
    for (int ms : {200, 300, 400}) program.sample(ms, 3, 3);
    double needed = program.answer()["counters"]["tensor"]["needed_us"];
    CHECK(needed > 1000);
    CHECK(needed < 1200);
  }
}
