#include "cudabpf/product.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "correlate/correlating.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t HANDLE = 0xb1a5, STREAM = 0x5600;
constexpr std::uint64_t GARBAGE = 0xdead'0000'0000;  // in the upper halves of registers

// Where a made-up cuBLASLt has what.
constexpr LtLayout LAYOUT = {
    {{4, 4}, {8, 8}, {16, 8}, {24, 8}, {32, 4}, {36, 4}, {0, 4}, {8, 4}, {12, 4}, {16, 4}}};

// What a call of cublasLtMatmul is given: a product, and three matrices.
struct Given {
  struct Matrix {
    std::uint32_t type;
    std::uint64_t rows, columns, ld;
    std::uint32_t batch, mode;
  };
  std::uint32_t transa = 1, transb = 0;
  Matrix a{14, 64, 32, 64, 3, 0}, b{14, 64, 16, 64, 3, 0}, c{0, 32, 16, 40, 3, 0};

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(168);
    auto put = [&](std::size_t at, auto value) { std::memcpy(&all[at], &value, sizeof(value)); };
    put(0, std::uint32_t{68});
    put(8, transa);
    put(12, transb);
    put(16, std::uint32_t{36});
    std::size_t at = 48;
    for (const Matrix& one : {a, b, c}) {
      put(at + 4, one.type);
      put(at + 8, one.rows);
      put(at + 16, one.columns);
      put(at + 24, one.ld);
      put(at + 32, one.batch);
      put(at + 36, one.mode);
      at += 40;
    }
    return all;
  }
};

struct Multiplying : Correlating {
  using Correlating::Correlating;

  samples::Head next() {
    samples::Head head;
    head.ts = time += 1000;
    head.pid = pid;
    head.tid = tid();
    head.drops = drops;
    return head;
  }
  void create() { call(next(), "cublasCreate_v2", {0x7000}, {HANDLE}); }
  void set_stream(std::uint64_t stream) { call(next(), "cublasSetStream_v2", {HANDLE, stream}); }
  void set_math(std::uint64_t mode) { call(next(), "cublasSetMathMode", {HANDLE, GARBAGE | mode}); }
  const Product& product() {
    REQUIRE(last().own_product);
    return *last().own_product;
  }
  const Product& matmul() {
    std::vector<std::byte> bytes = Given().bytes();
    samples::Head head = next();
    feed(samples::entry(head, "cublasLtMatmul", std::vector<std::uint64_t>(16, 1), bytes));
    head.ts += 100;
    feed(samples::returned(head, "cublasLtMatmul", 0));
    return product();
  }
  void sgemm() {
    call(next(), "cublasSgemm_v2",
         {HANDLE, GARBAGE | 1, GARBAGE, GARBAGE | 4, GARBAGE | 5, GARBAGE | 6, 0, 0x1000, 6, 0x2000,
          6, 0, 0x3000, 4});
  }
  void show(LtLayout layout) {
    auto bytes = samples::with_head(next(), abi::CB_LT_LAYOUT, sizeof(abi::cb_lt_layout));
    std::ranges::copy(layout, bytes.as<abi::cb_lt_layout>().places);
    feed(bytes);
  }
  void tell(std::uint64_t handle, std::uint64_t stream, std::uint32_t math = 0) {
    samples::Head head = next();
    head.tid = tid();
    auto bytes = samples::with_head(head, abi::CB_BLAS_HANDLE, sizeof(abi::cb_blas_handle));
    auto& said = bytes.as<abi::cb_blas_handle>();
    said.handle = handle;
    said.stream = stream;
    said.math = math;
    feed(bytes);
  }
  std::uint32_t tid() const { return thread ? thread : pid; }
  std::uint64_t time = 1000;
  std::uint32_t pid = 10, drops = 0, thread = 0;
};

Product described(const Given& given, const LtLayout* layout = &LAYOUT) {
  std::vector<std::byte> bytes = given.bytes();
  return describe_product(*find_function("cublasLtMatmul"), {}, bytes, layout);
}

Product of_arguments(const char* symbol, std::vector<std::uint64_t> words) {
  return describe_product(*find_function(symbol), words, {}, nullptr);
}

using Sizes = std::array<std::uint64_t, 4>;
Sizes sizes(const Product& product) { return {product.m, product.n, product.k, product.batch}; }

}  // namespace

TEST_CASE("A product of cuBLAS is in its arguments") {
  Product product =
      of_arguments("cublasGemmEx", {HANDLE, 1, 0, GARBAGE | 7, 8, 9, 0, 1, GARBAGE | 14, 9, 2, 14,
                                    9, 0, 3, 0, 7, GARBAGE | 68, GARBAGE | 99});
  CHECK(product.unknown == ShapeUnknown::none);
  CHECK(sizes(product) == Sizes{7, 8, 9, 1});
  CHECK(product.transposed == std::array<std::uint32_t, 2>{1, 0});
  CHECK(product.types == std::array{CudaType::R_16BF, CudaType::R_16BF, CudaType::R_32F});
  CHECK(product.compute == ComputeType::F32);
  CHECK(product.ld == std::array<std::optional<std::uint64_t>, 3>{9, 9, 7});
}

TEST_CASE("A matrix by a vector is a product with one column") {
  std::vector<std::uint64_t> words = {HANDLE, 0, 30, 40, 0, 1, 30, 2, 1, 0, 3, 1};
  CHECK(sizes(of_arguments("cublasDgemv_v2", words)) == Sizes{30, 1, 40, 1});
  words[1] = 1;
  CHECK(sizes(of_arguments("cublasDgemv_v2", words)) == Sizes{40, 1, 30, 1});
}

TEST_CASE("Sizes that cannot be are no shape, nor are arrays of them") {
  std::vector<std::uint64_t> words(19, 1);
  words[3] = 0xffff'ffff;
  CHECK(of_arguments("cublasGemmEx", words).unknown == ShapeUnknown::inconsistent);
  CHECK(of_arguments("cublasGemmEx", {}).unknown == ShapeUnknown::not_read);
  words.resize(20, 1);
  CHECK(of_arguments("cublasGemmGroupedBatchedEx", words).unknown == ShapeUnknown::grouped);
}

TEST_CASE("Every product of the table has its sizes in its arguments or in descriptors") {
  for (const Function& function : cuda_functions()) {
    if (function.type != Type::product || function.op == Op::matmul) continue;
    CAPTURE(function.symbol);
    Product product = of_arguments(function.symbol.data(), std::vector<std::uint64_t>(24, 1));
    if (function.op == Op::gemm_grouped)
      CHECK(product.unknown == ShapeUnknown::grouped);
    else
      CHECK(sizes(product) == Sizes{1, 1, 1, 1});
    CHECK(product.compute != ComputeType::unknown);
    CHECK(product.types[0] != CudaType::unknown);
    CHECK(product.types[2] != CudaType::unknown);
  }
}

TEST_CASE("cuBLASLt's descriptors are read where the library has shown what is") {
  Product product = described({});
  CHECK(product.unknown == ShapeUnknown::none);
  CHECK(sizes(product) == Sizes{32, 16, 64, 3});
  CHECK(product.epilogue == 36);
  CHECK(product.compute == ComputeType::F32);
  CHECK(product.types == std::array{CudaType::R_16BF, CudaType::R_16BF, CudaType::R_32F});
  CHECK(product.ld == std::array<std::optional<std::uint64_t>, 3>{64, 64, 40});
}

TEST_CASE("What is not where it was to be, or does not fit together, is no shape") {
  CHECK(described({}, nullptr).unknown == ShapeUnknown::descriptors);
  for (abi::cb_lt_field needed : {abi::CB_LT_TYPE, abi::CB_LT_ROWS, abi::CB_LT_COLUMNS,
                                  abi::CB_LT_BATCH, abi::CB_LT_TRANSA, abi::CB_LT_TRANSB}) {
    LtLayout layout = LAYOUT;
    layout[needed] = {0, 0};
    CHECK(described({}, &layout).unknown == ShapeUnknown::descriptors);
    layout[needed] = {44, 8};  // beyond what was read
    CHECK(described({}, &layout).unknown == ShapeUnknown::descriptors);
    layout[needed] = {0, 255};
    CHECK(described({}, &layout).unknown == ShapeUnknown::descriptors);
  }
  Given given;
  given.b.rows = 63;
  CHECK(described(given).unknown == ShapeUnknown::inconsistent);
  given = {};
  given.a.batch = 0;
  CHECK(described(given).unknown == ShapeUnknown::inconsistent);
  given = {};
  given.b.mode = 2;
  CHECK(described(given).unknown == ShapeUnknown::grouped);
}

TEST_CASE("A product is on the stream of its handle, if calls have shown it") {
  Multiplying program;
  program.sgemm();
  CHECK_FALSE(program.last().details.stream);
  program.create();
  program.sgemm();
  CHECK(program.last().details.stream == 0);
  program.set_stream(STREAM);
  program.sgemm();
  CHECK(program.last().details.stream == STREAM);
  SECTION("not in another process") {
    program.pid = 11;
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
  }
  SECTION("not after calls were lost") {
    program.drops = 1;
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
  }
  SECTION("not after its end") {
    program.call(program.next(), "cublasDestroy_v2", {HANDLE});
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
  }
}

TEST_CASE("A handle's mode says how products of floats are computed") {
  Multiplying program;
  program.sgemm();
  CHECK(program.product().compute == ComputeType::unknown);
  program.create();
  program.sgemm();
  CHECK(program.product().compute == ComputeType::F32);
  program.set_math(3 | 16);
  program.sgemm();
  CHECK(program.product().compute == ComputeType::F32_FAST_TF32);
}

TEST_CASE("What a handle itself says holds for its thread, until a record is lost") {
  Multiplying program;
  program.tell(HANDLE, STREAM, 3);
  program.sgemm();
  CHECK(program.last().details.stream == STREAM);
  CHECK(program.product().compute == ComputeType::F32_FAST_TF32);
  SECTION("whatever calls show") {
    program.set_stream(STREAM + 1);
    program.sgemm();
    CHECK(program.last().details.stream == STREAM);
  }
  SECTION("of another handle it says nothing") {
    program.tell(HANDLE + 1, STREAM + 1);
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
  }
  SECTION("and then calls are no source: those that set something may not be recorded") {
    program.create();
    program.tell(HANDLE + 1, STREAM + 1);
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
  }
  SECTION("nor to another thread, which may use it otherwise") {
    program.thread = 12;
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
    program.tell(HANDLE, STREAM + 1);
    program.thread = 0;
    program.sgemm();
    CHECK(program.last().details.stream == STREAM);
  }
  SECTION("what is lost may have said otherwise; the next one says it") {
    program.drops = 1;
    program.sgemm();
    CHECK_FALSE(program.last().details.stream);
    program.tell(HANDLE, STREAM + 1);
    program.sgemm();
    CHECK(program.last().details.stream == STREAM + 1);
  }
}

TEST_CASE("What cuBLASLt has shown holds for its process, unless another copy shows otherwise") {
  Multiplying program;
  CHECK(program.matmul().unknown == ShapeUnknown::descriptors);
  program.show(LAYOUT);
  CHECK(sizes(program.matmul()) == Sizes{32, 16, 64, 3});
  CHECK(program.last().details.stream == 1);
  program.show(LAYOUT);
  CHECK(program.matmul().unknown == ShapeUnknown::none);
  program.pid = 11;
  CHECK(program.matmul().unknown == ShapeUnknown::descriptors);
  program.pid = 10;
  LtLayout other = LAYOUT;
  other[abi::CB_LT_ROWS].at = 16;
  program.show(other);
  CHECK(program.matmul().unknown == ShapeUnknown::descriptors);
}
