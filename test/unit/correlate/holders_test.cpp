#include "correlate/learners/holders.hpp"

#include <catch2/catch_test_macros.hpp>

#include "correlate/correlating.hpp"

using namespace cudabpf;

namespace {

struct Asking : Correlating {
  samples::Head head(std::uint64_t sp = 0x1000) {
    return {.ts = time += 1000,
            .pid = 100,
            .tid = 100,
            .sp = static_cast<std::uint32_t>(sp),
            .drops = drops};
  }
  void begin(std::string_view symbol, std::uint64_t sp = 0x1000) {
    feed(samples::entry(head(sp), symbol, {0x10, 4096}));
  }
  void asked_by(std::string_view file, std::uint64_t sp = 0x1000) {
    auto bytes = samples::with_head(head(sp), abi::CB_HOLDER, sizeof(abi::cb_head));
    bytes.head().string_size = static_cast<std::uint16_t>(file.size() + 1);
    std::string text(file);
    bytes.append(text.c_str(), text.size() + 1);
    feed(bytes);
  }
  void end(std::string_view symbol, std::uint64_t sp = 0x1000) {
    feed(samples::returned(head(sp), symbol, 0, {0x7000}));
  }
  std::string holder() const { return last().own_holder; }

  std::uint64_t time = 1000;
  std::uint32_t drops = 0;
};

}  // namespace

TEST_CASE("an allocation has the holder that follows it", "[holders]") {
  Asking trace;
  trace.begin("cuMemAlloc_v2");
  trace.asked_by("libnccl.so.2.19.3");
  trace.end("cuMemAlloc_v2");
  CHECK(trace.holder() == "libnccl.so.2");
  trace.begin("cuMemAlloc_v2");
  trace.end("cuMemAlloc_v2");
  CHECK(trace.holder().empty());
  trace.begin("cuMemAlloc_v2");
  trace.asked_by("");
  trace.end("cuMemAlloc_v2");
  CHECK(trace.holder().empty());
}

TEST_CASE("a holder is of the call that has just begun there", "[holders]") {
  Asking trace;
  trace.begin("cuMemAlloc_v2");
  trace.asked_by("libother.so", 0x2000);
  trace.end("cuMemAlloc_v2");
  CHECK(trace.holder().empty());
  trace.begin("cuMemAlloc_v2");
  trace.drops++;
  trace.asked_by("libother.so");
  trace.end("cuMemAlloc_v2");
  CHECK(trace.holder().empty());
  trace.begin("cuInit");
  trace.asked_by("libother.so");
  trace.end("cuInit");
  CHECK(trace.holder().empty());
}

TEST_CASE("what the driver allocates within an allocation has its holder", "[holders]") {
  Asking trace;
  trace.begin("cuMemAllocManaged");
  trace.asked_by("libmine.so");
  trace.begin("cuMemAlloc_v2", 0x800);
  trace.asked_by("", 0x800);
  trace.end("cuMemAlloc_v2", 0x800);
  CHECK(trace.holder() == "libmine.so");
  trace.end("cuMemAllocManaged");
  CHECK(trace.holder() == "libmine.so");
}

TEST_CASE("a file's later version numbers are left out", "[holders]") {
  CHECK(holder_name("libcublas.so.12.1.3.1") == "libcublas.so.12");
  CHECK(holder_name("libtorch_cuda.so") == "libtorch_cuda.so");
  CHECK(holder_name("libx.so.1") == "libx.so.1");
  CHECK(holder_name("libx.so.1a.2") == "libx.so.1a.2");
  CHECK(holder_name("_C.cpython-311-x86_64-linux-gnu.so") == "_C.cpython-311-x86_64-linux-gnu.so");
  CHECK(holder_name("python3.11") == "python3.11");
}
