// Work that is captured into graphs instead of done.
#include <catch2/catch_test_macros.hpp>

#include "graphing.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("What a captured stream is given goes into the graph") {
  Graphing c;
  CHECK_FALSE(c.launch(GEMM).captured);
  c.begin_capture();
  CHECK(c.launch(GEMM).captured);
  CHECK(c.launch(GEMM).captured);
  CHECK(c.launch(GEMM, STREAM, 9).captured);
  CHECK(c.launch(RELU).captured);
  CHECK(c.call_with("cuMemcpyHtoDAsync_v2", {0xd0, 0x10, 4096, STREAM}).captured);
  CHECK(c.call_with("cuMemsetD8Async", {0xd0, 0, 64, STREAM}).captured);
  CHECK(c.call_with("cuMemAllocAsync", {0x1, 128, STREAM}, {}, {0xd1}).captured);
  CHECK(c.call_with("cuMemFreeAsync", {0xd1, STREAM}).captured);
  CHECK(c.call_with("cuLaunchHostFunc", {STREAM, 0x1, 0}).captured);
  CHECK(c.call_with("cuStreamWriteValue32_v2", {STREAM, 0xd0, 1, 0}).captured);
  CHECK_FALSE(c.call_with("cuStreamIsCapturing", {STREAM, 0x1}).captured);
  CHECK_FALSE(c.launch(RELU, OTHER_STREAM).captured);
  c.end_capture(0x900);
  CHECK_FALSE(c.launch(GEMM).captured);
  CHECK(c.launched_from(0x910, 0x900) ==
        "10/4 gemm:8*2 gemm:9*1 relu:8*1 copy:4096*1 set:64*1 alloc:128*1 free*1 host*1 other*1");
}

TEST_CASE("Streams join a capture by its events") {
  Graphing c;
  c.begin_capture();
  c.call_with("cuEventRecord", {EVENT, STREAM});
  CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  c.call_with("cuStreamWaitEvent", {OTHER_STREAM, EVENT, 0});
  CHECK(c.launch(GEMM, OTHER_STREAM).captured);
  SECTION("and leave it when it ends") {
    c.end_capture(0x900);
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
    c.call_with("cuStreamWaitEvent", {OTHER_STREAM, EVENT, 0});
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
    CHECK(c.launched_from(0x910, 0x900) == "1/1 gemm:8*1");
  }
  SECTION("or fails") {
    c.end_capture(0, STREAM, 904);
    CHECK_FALSE(c.launch(GEMM).captured);
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  }
  SECTION("also when another thread ends it, which fails") {
    c.end_capture(0, STREAM, 908);
    CHECK_FALSE(c.launch(GEMM).captured);
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  }
  SECTION("or goes with the stream that it began on") {
    c.call_with("cuStreamDestroy_v2", {STREAM});
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  }
  SECTION("which a stream that joined does not take with it") {
    c.call_with("cuStreamDestroy_v2", {OTHER_STREAM});
    CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
    CHECK(c.launch(GEMM).captured);
  }
  SECTION("not by events that were recorded elsewhere since") {
    c.call_with("cuEventRecord", {EVENT, 0x72});
    c.call_with("cuStreamWaitEvent", {0x73, EVENT, 0});
    CHECK_FALSE(c.launch(GEMM, 0x73).captured);
  }
  SECTION("and external events are captured themselves") {
    CHECK(c.call_with("cuEventRecordWithFlags", {0xe1, STREAM, 1}).captured);
    c.call_with("cuStreamWaitEvent", {0x73, 0xe1, 0});
    CHECK_FALSE(c.launch(GEMM, 0x73).captured);
    CHECK(c.call_with("cuStreamWaitEvent", {STREAM, 0xe1, 1}).captured);
    c.end_capture(0x900);
    CHECK(c.launched_from(0x910, 0x900) == "3/1 gemm:8*1 other*2");
  }
}

TEST_CASE("A thread's own default stream is another than other threads'") {
  Graphing c;
  c.call_with("cuStreamBeginCapture_v2_ptsz", {0, 0});
  CHECK(c.call_with("cuLaunchKernel_ptsz", {GEMM, 1, 1, 1, 1, 1, 1, 0, 0}).captured);
  CHECK(c.launch(GEMM, 2).captured);  // by the name that it has in every thread
  CHECK_FALSE(c.launch(GEMM, 0).captured);
  c.head.tid = 101;
  CHECK_FALSE(c.call_with("cuLaunchKernel_ptsz", {GEMM, 1, 1, 1, 1, 1, 1, 0, 0}).captured);
}

TEST_CASE("Work that failed, or is part of other work, is not counted") {
  Graphing c;
  c.begin_capture();
  c.launch(GEMM, STREAM, 8, FAILED);
  Head outer = c.head, inner = c.head;
  outer.ts += 10'000;
  inner.ts += 10'100;
  inner.sp -= 0x100;
  std::vector<std::uint64_t> words = {GEMM, 8, 1, 1, 1, 1, 1, 0, STREAM};
  c.feed(entry(outer, "cuLaunchKernel", words));
  c.feed(entry(inner, "cuLaunchCooperativeKernel", words));
  inner.ts += 100;
  outer.ts += 500;
  c.feed(returned(inner, "cuLaunchCooperativeKernel"));
  CHECK(c.last().captured);
  c.feed(returned(outer, "cuLaunchKernel"));
  c.head.ts += 20'000;
  c.end_capture(0x900);
  CHECK(c.launched_from(0x910, 0x900) == "1/1 gemm:8*1");
}

TEST_CASE("Captures into a graph that exists add to it") {
  Graphing c;
  c.make(0x900);
  c.add_kernel(0x900, 0x801, RELU);
  c.call_with("cuStreamBeginCaptureToGraph", {STREAM, 0x900, 0, 0, 0, 0});
  c.launch(GEMM);
  c.end_capture(0x900);
  CHECK(c.launched_from(0x910, 0x900) == "2/2 gemm:8*1 relu:8*1");
}

TEST_CASE("A graph launched into a captured stream is part of the graph") {
  Graphing c;
  c.begin_capture();
  c.launch(GEMM);
  c.end_capture(0x900);
  c.instantiate(0x910, 0x900);
  c.begin_capture();
  CHECK(c.launched(0x910) == "captured");
  CHECK(c.launched(0x910) == "captured");
  c.launch(RELU);
  c.end_capture(0x901);
  CHECK(c.launched_from(0x911, 0x901) == "3/3 gemm:8*2 relu:8*1");
  CHECK(c.launched(0x910) == "1/1 gemm:8*1");
}

TEST_CASE("Copies and fills of nothing are no nodes") {
  Graphing c;
  c.begin_capture();
  CHECK(c.call_with("cuMemcpyHtoDAsync_v2", {0xd0, 0x10, 0, STREAM}).captured);
  CHECK(c.call_with("cuMemsetD2D8Async", {0xd0, 64, 0, 16, 0, STREAM}).captured);
  c.launch(GEMM);
  c.end_capture(0x900);
  CHECK(c.launched_from(0x910, 0x900) == "1/1 gemm:8*1");
}

TEST_CASE("A node that is added to a capture by an unknown handle") {
  Graphing c;
  c.begin_capture();
  c.launch(GEMM);
  SECTION("may be in it") { c.add_kernel(0x999, 0x801, RELU); }
  SECTION("and may be added by another capture") {
    c.call_with("cuStreamBeginCaptureToGraph", {OTHER_STREAM, 0x999, 0, 0, 0, 0});
  }
  SECTION("or changed") {
    c.call_with("cuGraphKernelNodeSetParams_v2", {0x888, 0x2}, kernel_node(GEMM, 1));
  }
  c.end_capture(0x900);
  CHECK(c.launched_from(0x910, 0x900) == "changed");
}

TEST_CASE("After a loss, nothing is taken for captured") {
  Graphing c;
  c.begin_capture();
  CHECK(c.launch(GEMM).captured);
  c.head.drops = 1;
  CHECK_FALSE(c.launch(GEMM).captured);
  c.end_capture(0x900);
  CHECK(c.launched_from(0x910, 0x900) == "lost");
  c.begin_capture();
  CHECK(c.launch(GEMM).captured);
}

TEST_CASE("A stream that is destroyed and made again is not captured") {
  Graphing c;
  c.begin_capture();
  c.call_with("cuStreamDestroy_v2", {STREAM});
  CHECK_FALSE(c.launch(GEMM).captured);
}

TEST_CASE("What is captured is known although functions of graphs are left out") {
  Correlator::Options options;
  options.coverage.graphs = Graphs::Recorded::captures;
  Graphing c(options);
  c.begin_capture();
  CHECK(c.launch(GEMM).captured);
  CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  c.call_with("cuEventRecord", {EVENT, STREAM});
  c.call_with("cuStreamWaitEvent", {OTHER_STREAM, EVENT, 0});
  CHECK(c.launch(GEMM, OTHER_STREAM).captured);
  c.end_capture(0x900, STREAM, FAILED);
  CHECK_FALSE(c.launch(GEMM).captured);
  CHECK_FALSE(c.launch(GEMM, OTHER_STREAM).captured);
  CHECK(c.launched_from(0x910, 0x900) == "not_recorded");
}

TEST_CASE("Where only its collectives are known of a graph, its launches say these alone") {
  Correlator::Options options;
  options.coverage.graphs = Graphs::Recorded::collectives;
  Graphing c(options);
  auto reduce = [&](std::uint64_t stream, std::uint64_t count) {
    return c.call_with("ncclAllReduce", {1, 2, count, 7, 0, 0x5e00, stream}).captured;
  };
  CHECK_FALSE(reduce(STREAM, 1));
  c.begin_capture();
  CHECK(reduce(STREAM, 2));
  c.launch(GEMM);
  CHECK_FALSE(reduce(OTHER_STREAM, 3));
  c.call_with("cuEventRecord", {EVENT, STREAM});
  c.call_with("cuStreamWaitEvent", {OTHER_STREAM, EVENT, 0});
  CHECK(reduce(OTHER_STREAM, 4));
  c.end_capture(0x900);
  CHECK_FALSE(reduce(STREAM, 5));
  CHECK(c.launched_from(0x910, 0x900) == "0/0");
  REQUIRE(c.last().graph->collectives.size() == 2);
  CHECK(c.last().graph->collectives[0].size == 8);
  CHECK(c.last().graph->collectives[1].size == 16);
  CHECK(c.last().graph->collectives[1].op == Op::all_reduce);
  CHECK(c.launched(0x920) == "before");
}
