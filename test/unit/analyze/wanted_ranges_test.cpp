// Answers about certain ranges of the program's own.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "analyze/iterations/execution.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/kernels.hpp"
#include "support/range_lines.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr const char* HEADER_WITH_RANGES =
    R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0","gpu_timing":"nodes","ranges":true})"
    "\n";

struct Asked {
  Asked(const std::string& lines, std::string_view pattern, Part part = {})
      : reader(open(folder.write("t.jsonl", HEADER_WITH_RANGES + lines))) {
    reader->want(part, {}, pattern);
  }
  static std::unique_ptr<TraceReader> open(const std::string& path) {
    auto opened = TraceReader::open({path});
    if (!opened) FAIL(opened.error().message);
    return std::move(*opened);
  }
  void show(Analysis& analysis) { REQUIRE(analyze::analyze(*reader, {&analysis})); }
  const WantedRanges& ranges() const { return reader->facts().ranges; }

  TemporaryFolder folder;
  std::unique_ptr<TraceReader> reader;
};

// How many calls are in what is asked for.
std::uint64_t calls_in(const std::string& lines, std::string_view pattern, Part part = {}) {
  Asked asked(lines, pattern, part);
  Calls calls(asked.reader->names(), Calls::By::function);
  asked.show(calls);
  auto groups = calls.groups();
  std::uint64_t count = groups.empty() ? 0 : groups[0].all.count;
  CHECK(asked.reader->facts().calls_in_part == count);
  CHECK(asked.ranges().found == (count > 0 || !part.is_whole()));
  return count;
}

const std::string NESTED_RANGES = named(1, "request 0") + named(2, "decode", 1) +
                                  named(3, "layer 0", 2) + named(4, "other") + launched_in(1, 1) +
                                  launched_in(2, 2) + launched_in(3, 3) + launched_in(4, 4) +
                                  launched_in(5, 0);

}  // namespace

TEST_CASE("Calls in ranges of a name, and in those inside them") {
  CHECK(calls_in(NESTED_RANGES, "decode") == 2);
  CHECK(calls_in(NESTED_RANGES, "de*") == 2);
  CHECK(calls_in(NESTED_RANGES, "request ?") == 3);
  CHECK(calls_in(NESTED_RANGES, "layer [0-9]") == 1);
  CHECK(calls_in(NESTED_RANGES, "*") == 4);
  CHECK(calls_in(NESTED_RANGES, "decode", {0, 103}) == 1);
}

TEST_CASE("A pattern with a slash is for the path, with blanks or without") {
  CHECK(calls_in(NESTED_RANGES, "request */decode") == 2);
  CHECK(calls_in(NESTED_RANGES, "request 0 / decode / layer*") == 1);
  CHECK(calls_in(NESTED_RANGES, "*/layer 0") == 1);
}

TEST_CASE("A pattern that fits nothing says which ones would") {
  Asked asked(NESTED_RANGES, "prefill");
  Calls calls(asked.reader->names(), Calls::By::function);
  asked.show(calls);
  CHECK_FALSE(asked.ranges().found);
  CHECK(asked.ranges().others ==
        std::vector<std::string>{"request *", "decode", "layer *", "other"});
}

TEST_CASE("A GPU's work counts if its call was in a wanted range") {
  std::string lines = named(1, "a") + named(2, "b") + launched_in(1, 1) + worked(1, 5) +
                      launched_in(20, 2) + worked(20, 10) + launched_in(40, 2) + worked(40, 1);
  Asked asked(lines, "b");
  analyze::Execution execution(asked.reader->names(), {}, 5, asked.reader->facts().part);
  asked.show(execution);
  REQUIRE(execution.gpus().gpus().size() == 1);
  const auto& gpu = execution.gpus().gpus()[0];
  CHECK(gpu.operations == 2);
  CHECK(gpu.busy_time() == 11'000);
  CHECK(gpu.idle.count() == 2);
  CHECK(gpu.idle_time() == 14'000 + 10'000);

  Asked again(lines, "a");
  Kernels kernels(again.reader->names());
  again.show(kernels);
  CHECK(kernels.totals().launches == 1);
  CHECK(kernels.gpu().kernels().times.total() == 5'000);
}

TEST_CASE("Memory that wanted ranges allocated, whoever frees it") {
  auto memory_line = [](const std::string& op, int id, int number, const std::string& at) {
    return fmt::format(
        R"({{"id":{},"type":"memory","op":"{}","name":"cuMem","ts":{},"duration_us":1.000,"pid":7,"tid":7,"ret":0,"range":{},"size":100,"ptr":"{}","kind":"device"}})"
        "\n",
        id, op, 1000 * id, number, at);
  };
  Asked asked(named(1, "a") + named(2, "b") + memory_line("alloc", 1, 1, "0x10") +
                  memory_line("alloc", 2, 2, "0x20") + memory_line("alloc", 3, 1, "0x30") +
                  memory_line("free", 4, 2, "0x10") + memory_line("free", 5, 1, "0x20"),
              "a");
  Memory memory(asked.reader->names(), asked.reader->facts().part);
  asked.show(memory);
  Json json = memory_json(memory);
  CHECK(json["all"]["peak"]["gpu"]["bytes"] == 200);
  CHECK(json["all"]["kinds"]["device"]["allocations"] == 2);
  CHECK(json["all"]["kinds"]["device"]["held"] == 100);
  CHECK(json["frees_without_allocation"]["count"] == 0);
  CHECK(json["never_freed"]["blocks"] == 1);
}
