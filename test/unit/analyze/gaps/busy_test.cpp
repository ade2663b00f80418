#include "analyze/gaps/busy.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

#include "analyze/gaps/gpu_curve.hpp"
#include "support/random_numbers.hpp"

using namespace cudabpf::analyze;

TEST_CASE("A sum counts twice what ran at once, a union does not") {
  Busy busy;
  busy.add({GpuOp::kernel}, 0, 100);
  busy.add({GpuOp::kernel}, 20, 40);    // within it
  busy.add({GpuOp::kernel}, 50, 150);   // beyond it
  busy.add({GpuOp::kernel}, 150, 160);  // right after it
  busy.add({GpuOp::copy}, 155, 300);
  busy.add({GpuOp::set}, 290, 310);
  busy.add({GpuOp::kernel}, 400, 400);  // takes no time
  CHECK(busy.of(GpuOp::kernel).sum == 230);
  CHECK(busy.of(GpuOp::kernel).count == 5);
  CHECK(busy.of(GpuOp::kernel).united.total() == 160);
  CHECK(busy.of(GpuOp::copy).united.total() == 145);
  CHECK(busy.of(GpuOp::set).united.total() == 20);
  CHECK(busy.all().total() == 310);
  CHECK(busy.overlap() == 5);
}

TEST_CASE("Unions and overlaps are those of a reference that looks at each moment") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; round++) {
    constexpr unsigned SPAN = 400;
    struct Piece {
      std::uint64_t begin, end;
      GpuOp op;
    };
    std::vector<Piece> pieces;
    std::uint64_t sum[GPU_OPS] = {};
    for (unsigned i = any(random, 40); i; i--) {
      std::uint64_t begin = any(random, SPAN);
      std::uint64_t end = std::min<std::uint64_t>(SPAN, begin + any(random, 30));
      pieces.push_back({begin, end, static_cast<GpuOp>(any(random, GPU_OPS))});
      sum[static_cast<std::size_t>(pieces.back().op)] += end - begin;
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    std::uint64_t united[GPU_OPS] = {}, all = 0, both = 0;
    for (std::uint64_t t = 0; t < SPAN; t++) {
      bool runs[GPU_OPS] = {};
      for (const Piece& piece : pieces)
        if (piece.begin <= t && t < piece.end) runs[static_cast<std::size_t>(piece.op)] = true;
      for (std::size_t op = 0; op < GPU_OPS; op++) united[op] += runs[op];
      all += runs[0] || runs[1] || runs[2];
      both += runs[0] && runs[1];
    }
    Busy busy;
    for (const Piece& piece : pieces) busy.add({piece.op}, piece.begin, piece.end);
    for (std::size_t op = 0; op < GPU_OPS; op++) {
      CHECK(busy.of(static_cast<GpuOp>(op)).sum == sum[op]);
      CHECK(busy.of(static_cast<GpuOp>(op)).united.total() == united[op]);
    }
    CHECK(busy.all().total() == all);
    CHECK(busy.overlap() == both);
  }
}

namespace {

// Ten times 30 of work, then 70 idle.
GpuCurve curve_of(std::size_t most) {
  GpuCurve curve(most);
  for (std::uint64_t at = 0; at < 1000; at += 100) {
    GpuCurve::Piece piece{at, at + 30, at + 100, {.busy = 30, .kernels = 20}, {}};
    piece.idle[IdleCause::outside] = 70;
    curve.add(piece);
  }
  return curve;
}

}  // namespace

TEST_CASE("A curve shows for any stretch how busy the GPU was") {
  GpuCurve curve = curve_of(100);
  GpuCurve::Share all = curve.between(0, 1000);
  CHECK(all.busy == 300);
  CHECK(all.kernels == 200);
  CHECK(all.idle[IdleCause::outside] == 700);
  GpuCurve::Share some = curve.between(115, 160);
  CHECK(some.time == 45);
  CHECK(some.busy == 15);
  CHECK(some.kernels == 10);
  CHECK(some.idle[IdleCause::outside] == 30);
  CHECK(curve.between(2000, 3000).busy == 0);
  CHECK(curve.between(2000, 3000).idle_time() == 1000);
  CHECK(curve.between(5, 5).time == 0);
}

TEST_CASE("A curve of many pieces becomes coarser and keeps its sums") {
  GpuCurve curve = curve_of(4);
  GpuCurve::Share all = curve.between(0, 1000);
  CHECK(all.busy == 300);
  CHECK(all.idle[IdleCause::outside] == 700);
  GpuCurve::Share half = curve.between(0, 400);
  CHECK(half.busy == 120);
  CHECK(half.idle[IdleCause::outside] == 280);
}
