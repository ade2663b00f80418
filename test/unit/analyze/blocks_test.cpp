// Blocks of PyTorch's allocator, beside what it has reserved.
#include "analyze/memory/blocks.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "analyze/memory/memory.hpp"
#include "support/range_lines.hpp"
#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint64_t MEBIBYTE = 1 << 20;

// BlockLines, one every µs.
struct BlockLines {
  std::string text;
  int id = 0, pid = 7;
  std::string holder = "libc10_cuda.so";

  BlockLines& add(const std::string& fields) {
    id++;
    text += fmt::format(R"({{"id":{},{},"ts":{},"pid":{},"tid":{}}})"
                        "\n",
                        id, fields, id * 1000, pid, pid);
    return *this;
  }
  BlockLines& reserve(int address, std::uint64_t size, int device = 0, int ret = 0) {
    std::string by = holder.empty() ? "" : fmt::format(R"(,"holder":"{}")", holder);
    return add(fmt::format(
        R"("type":"memory","op":"alloc","name":"cuMemAlloc","duration_us":0.001,"ret":{}{},"size":{},"ptr":"{:#x}","kind":"device","device":{})",
        ret, by, size, address, device));
  }
  BlockLines& release(int address) {
    return add(fmt::format(
        R"("type":"memory","op":"free","name":"cuMemFree","duration_us":0.001,"ret":0,"ptr":"{:#x}","kind":"device")",
        address));
  }
  BlockLines& alloc(int address, std::uint64_t size, int device = 0, int range = 0) {
    return add(fmt::format(
        R"("type":"block","op":"alloc","name":"pytorch:malloc","library":"c10","layer":2{},"size":{},"ptr":"{:#x}","device":{},"args":{{"stream_id":0}})",
        range ? fmt::format(R"(,"range":{})", range) : "", size, address, device));
  }
  BlockLines& free(int address) {
    return add(fmt::format(
        R"("type":"block","op":"free","name":"pytorch:free","library":"c10","layer":2,"ptr":"{:#x}")",
        address));
  }
  BlockLines& exit() {
    id++;
    text += fmt::format(R"({{"type":"process","op":"exit","ts":{},"pid":{}}})"
                        "\n",
                        id * 1000, pid);
    return *this;
  }
};

struct AnsweredBlocks {
  explicit AnsweredBlocks(const std::string& lines, Part part = {},
                          Memory::By by = Memory::By::process)
      : trace(lines), memory(trace.names(), part, by) {
    trace.show(memory, part);
  }
  Json blocks() const { return memory_json(memory)["blocks"]; }
  std::string page() const {
    return page_text([&](Page& page) { add_memory(page, memory, 5); });
  }
  TraceText trace;
  Memory memory;
};

Json level_json(std::uint64_t ts, std::uint64_t blocks, std::uint64_t allocated,
                std::uint64_t reserved) {
  return {{"ts", ts},
          {"blocks", blocks},
          {"allocated", allocated},
          {"reserved", reserved},
          {"unused", reserved > allocated ? reserved - allocated : 0}};
}

}  // namespace

TEST_CASE("What is allocated of what PyTorch has reserved, at each peak and at the end") {
  BlockLines lines;
  lines.reserve(0x1000000, 20 * MEBIBYTE)
      .alloc(0x1000000, 4 * MEBIBYTE)
      .alloc(0x1400000, 8 * MEBIBYTE);
  lines.free(0x1000000).reserve(0x9000000, 30 * MEBIBYTE).alloc(0x9000000, 1 * MEBIBYTE);
  lines.holder = "libnccl.so.2";
  lines.reserve(0x50000000, 500 * MEBIBYTE).release(0x9000000).exit();
  AnsweredBlocks answered(lines.text);
  Json json = answered.blocks();
  REQUIRE(json["allocators"].size() == 1);
  const Json& one = json["allocators"][0];
  CHECK(one["pid"] == 7);
  CHECK(one["device"] == 0);
  CHECK(one["reserved_by"] == "allocator");
  CHECK(one["allocations"] == 3);
  CHECK(one["frees"] == 1);
  CHECK(one["most_allocated"] == level_json(3000, 2, 12 * MEBIBYTE, 20 * MEBIBYTE));
  // What is reserved for a block is not yet allocated for a moment, which does not count.
  CHECK(one["most_reserved"] == level_json(6000, 2, 9 * MEBIBYTE, 50 * MEBIBYTE));
  CHECK(one["most_unused"] == level_json(6000, 2, 9 * MEBIBYTE, 50 * MEBIBYTE));
  CHECK(one["end"] == level_json(8001, 2, 9 * MEBIBYTE, 20 * MEBIBYTE));  // as its process left it
  CHECK_THAT(answered.page(), ContainsSubstring("PyTorch's blocks: process 7, GPU 0"));
  CHECK_THAT(answered.page(), ContainsSubstring("most not allocated"));
  // Blocks are no memory of the driver's.
  CHECK(answered.memory.all().kinds[0].allocations == 3);
  CHECK(answered.memory.unknown_free_count() == 0);
}

TEST_CASE("Where whose code reserved is not known, all of the process counts") {
  BlockLines lines;
  lines.holder = "";
  lines.reserve(0x1000000, 20 * MEBIBYTE).alloc(0x1000000, 4 * MEBIBYTE).alloc(0x5000000, 1, 1);
  AnsweredBlocks answered(lines.text);
  Json json = answered.blocks();
  REQUIRE(json["allocators"].size() == 2);
  CHECK(json["allocators"][0]["reserved_by"] == "process");
  CHECK(json["allocators"][0]["most_allocated"] ==
        level_json(2000, 1, 4 * MEBIBYTE, 20 * MEBIBYTE));
  CHECK(json["allocators"][1]["device"] == 1);
  CHECK(json["allocators"][1]["end"] == level_json(3000, 1, 1, 0));
  CHECK_THAT(answered.page(), ContainsSubstring("memory of the process; whose code asked"));
}

TEST_CASE("A trace without blocks says nothing of them") {
  BlockLines lines;
  lines.reserve(0x1000000, 20 * MEBIBYTE);
  AnsweredBlocks answered(lines.text);
  CHECK_FALSE(memory_json(answered.memory).contains("blocks"));
  CHECK(answered.page().find("PyTorch") == std::string::npos);
}

TEST_CASE("Frees of blocks that were not seen are counted, and nothing is guessed") {
  BlockLines lines;
  lines.free(0x10).free(0).alloc(0x20, 100).alloc(0x20, 30).free(0x20).free(0x20);
  lines.pid = 8;
  lines.free(0x20);
  Json json = AnsweredBlocks(lines.text).blocks();
  CHECK(json["frees_without_allocation"] == 3);
  CHECK(json["replaced"] == 1);
  REQUIRE(json["allocators"].size() == 1);
  CHECK(json["allocators"][0]["frees"] == 1);
  CHECK(json["allocators"][0]["end"]["blocks"] == 0);
  CHECK(json["allocators"][0]["most_allocated"]["allocated"] == 100);
}

TEST_CASE("A process's address means nothing to one that has its pid later") {
  BlockLines lines;
  lines.alloc(0x20, 100).exit().alloc(0x30, 5).free(0x20);
  Json json = AnsweredBlocks(lines.text).blocks();
  CHECK(json["allocators"].size() == 2);
  CHECK(json["frees_without_allocation"] == 1);
}

TEST_CASE("In a part of the trace, blocks that were allocated before are held") {
  BlockLines lines;
  lines.reserve(0x1000000, MEBIBYTE).alloc(0x10, 600).alloc(0x20, 300).free(0x10);
  lines.alloc(0x30, 50).free(0x20).alloc(0x40, 5000);
  Json one = AnsweredBlocks(lines.text, {.from = 4500, .to = 6500}).blocks()["allocators"][0];
  CHECK(one["allocations"] == 1);
  CHECK(one["frees"] == 1);
  CHECK(one["most_allocated"] == level_json(5000, 2, 350, MEBIBYTE));
  CHECK(one["end"] == level_json(6000, 1, 50, MEBIBYTE));
}

TEST_CASE("Blocks by the program's ranges") {
  BlockLines lines;
  lines.alloc(0x10, 600, 0, 1).alloc(0x20, 300, 0, 2).free(0x10).alloc(0x30, 50, 0, 1);
  lines.alloc(0x40, 7);
  AnsweredBlocks answered(named(1, "forward") + named(2, "backward") + lines.text, {},
                          Memory::By::range);
  Json ranges = answered.blocks()["ranges"];
  REQUIRE(ranges.size() == 3);
  CHECK(ranges[0] == Json{{"range", "forward"},
                          {"allocations", 2},
                          {"allocated", 650},
                          {"frees", 1},
                          {"peak", 600},
                          {"held", 50}});
  CHECK(ranges[1]["range"] == "backward");
  CHECK(ranges[2]["range"].is_null());
  CHECK(ranges[2]["held"] == 7);
  CHECK_THAT(answered.page(), ContainsSubstring("PyTorch's blocks by range"));
}

TEST_CASE("When memory runs out, what is reserved and not allocated is known") {
  BlockLines lines;
  lines.reserve(0x1000000, 20 * MEBIBYTE)
      .alloc(0x1000000, 5 * MEBIBYTE)
      .reserve(0, 30 * MEBIBYTE, 0, 2);
  AnsweredBlocks answered(lines.text);
  REQUIRE(answered.memory.ran_out().size() == 1);
  Json moment = out_of_memory_json(answered.memory)["first"][0];
  CHECK(moment["blocks"] ==
        Json{{"allocated", 5 * MEBIBYTE}, {"reserved", 20 * MEBIBYTE}, {"unused", 15 * MEBIBYTE}});
  std::string text = page_text([&](Page& page) { add_out_of_memory(page, answered.memory); });
  CHECK_THAT(text, ContainsSubstring("15.0 MiB of it was not allocated"));
}

TEST_CASE("Places of blocks that are too many are one") {
  std::string names, text;
  BlockLines lines;
  for (int outer = 1; outer <= 6; outer++) names += named(outer, fmt::format("r{}", outer));
  for (int i = 1; i <= 300; i++) {
    names += named(1000 + i, fmt::format("r{}", i), 1 + i % 6);
    lines.alloc(0x1000 + i, 10, 0, 1000 + i);
  }
  AnsweredBlocks answered(names + lines.text, {}, Memory::By::range);
  const auto& places = answered.memory.blocks().places();
  CHECK(places.size() == 257);
  std::uint64_t held = 0;
  for (const auto& place : places) held += place.held;
  CHECK(held == 3000);
}

TEST_CASE("Blocks have a curve and a line in the picture, which falls with the process") {
  BlockLines lines;
  lines.reserve(0x1000000, 20 * MEBIBYTE).alloc(0x1000000, 4 * MEBIBYTE).alloc(0x1400000, 8);
  lines.free(0x1000000);
  lines.pid = 8;
  lines.reserve(0x2000000, 20 * MEBIBYTE).alloc(0x2000000, 2 * MEBIBYTE);
  lines.pid = 7;
  lines.exit().release(0x2000000);
  AnsweredBlocks answered(lines.text, {.to = 9000});
  const Memory& memory = answered.memory;
  auto columns = memory.columns(memory.all().curve, 9);
  std::vector<std::uint64_t> most;
  for (const Memory::Level& column : columns) most.push_back(column.most.blocks);
  // A column is a µs: what was held when it began counts in it.
  CHECK(most == std::vector<std::uint64_t>{0, 0, 4 * MEBIBYTE, 4 * MEBIBYTE + 8, 4 * MEBIBYTE + 8,
                                           8, 2 * MEBIBYTE + 8, 2 * MEBIBYTE + 8, 2 * MEBIBYTE});
  CHECK(memory.all().held.blocks == 2 * MEBIBYTE);  // of the process that goes on
  CHECK(memory_json(memory)["all"]["curve"]["blocks"].size() > 8);
  std::string picture = memory_svg(memory, "blocks");
  CHECK_THAT(picture,
             ContainsSubstring("PyTorch's blocks: at most 4.00 MiB</title></polyline>") &&
                 ContainsSubstring("PyTorch's blocks: at most 2.00 MiB</title></polyline>"));
  // By range they have no curve: a range's blocks are no part of the memory that it reserved.
  AnsweredBlocks by_range(lines.text, {}, Memory::By::range);
  CHECK_FALSE(memory_json(by_range.memory)["all"]["curve"].contains("blocks"));
  // In a part, what was allocated before is there from its beginning.
  AnsweredBlocks part(lines.text, {.from = 3500, .to = 5500});
  CHECK(part.memory.columns(part.memory.all().curve, 2)[0].most.blocks == 4 * MEBIBYTE + 8);
  CHECK(part.memory.columns(part.memory.all().curve, 2)[1].most.blocks == 8);
}
