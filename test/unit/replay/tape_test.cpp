#include <catch2/catch_test_macros.hpp>

#include "replay/contents.hpp"
#include "replay/launches.hpp"
#include "replay/layout.hpp"
#include "replay/listing.hpp"
#include "sample_tape.hpp"

using namespace cudabpf;
using namespace cudabpf::replay;

TEST_CASE("A graph's nodes are steps, as its last change left them") {
  SampleTape sample({launch_step(0, 1),
                     graph_step({sample_launch_of(0, 2), sample_launch_of(0, 3)}), graph_step({}),
                     graph_step({sample_launch_of(0, 4)}), graph_step({})});
  REQUIRE(sample.tape);
  std::vector<std::uint32_t> grids;
  for (const Step& step : sample.tape->steps()) grids.push_back(step.launch->grid[0]);
  CHECK(grids == std::vector<std::uint32_t>{1, 2, 3, 2, 3, 4, 4});
  CHECK(sample.tape->graph_launches() == 4);
  CHECK(description_of(sample.tape->steps()[0], sample.manifest) == "add (call 0)");
}

TEST_CASE("A graph that a hostile tape launches too often is refused") {
  std::vector<bundle::Launch> nodes(3000, sample_launch_of(0, 1));
  std::vector<bundle::Operation> operations{graph_step(nodes)};
  operations.resize(2000, graph_step({}));
  SampleTape sample(operations);
  REQUIRE_FALSE(sample.tape);
  CHECK(sample.tape.error().message == "the tape has more work than a replay does");
}

TEST_CASE(
    "Launches are distinct by kernel, grid, block and shared memory, and by why they are refused") {
  std::vector<bundle::Operation> operations{launch_step(0, 1),          launch_step(1, 1),
                                            launch_step(0, 2),          launch_step(0, 1),
                                            sample_step(Action::drain), launch_step(0, 1)};
  operations[5].refused = "it waits";
  SampleTape sample(operations);
  REQUIRE(sample.tape);
  std::vector<std::uint32_t> of_steps;
  auto launches = distinct_launches(*sample.tape, sample.manifest, &of_steps);
  REQUIRE(launches.size() == 4);
  CHECK((launches[0].count == 2 && launches[0].first == 0 && launches[0].refused.empty()));
  CHECK((launches[1].kernel == 1 && launches[1].refused == "a collective"));
  CHECK((launches[2].grid[0] == 2 && launches[2].first == 2));
  CHECK(launches[3].refused == "it waits");
  CHECK(of_steps == std::vector<std::uint32_t>{0, 1, 2, 0, NONE, 3});
}

TEST_CASE("Launches are distinct by their parameters, but for addresses of the program's memory") {
  constexpr std::size_t SIZE = 16;
  std::string data;
  std::vector<bundle::Operation> operations;
  auto add = [&](std::uint64_t address, std::uint64_t scalar) {
    operations.push_back(launch_step(0, 1));
    operations.back().launch->parameters = {data.size(), SIZE};
    for (std::uint64_t word : {address, scalar})
      data.append(reinterpret_cast<const char*>(&word), sizeof(word));
  };
  add(SAMPLE_BASE, 5);
  add(SAMPLE_BASE + 4095, 5);
  add(SAMPLE_BASE, 6);
  add(SAMPLE_BASE + 4096, 5);  // of nothing
  for (std::uint64_t seed = 100; seed < 200; seed++) add(SAMPLE_BASE, seed);
  SampleTape sample(operations, sample_replay(), data);
  REQUIRE(sample.tape);
  std::vector<std::uint32_t> of_steps;
  auto launches = distinct_launches(*sample.tape, sample.manifest, &of_steps);
  of_steps.resize(4);
  CHECK(of_steps == std::vector<std::uint32_t>{0, 0, 1, 2});
  REQUIRE(launches.size() == 16);  // a seed for each makes no kind of its own
  CHECK(launches.back().count == 88);
}

TEST_CASE("Addresses are taken in whole units, and only live memory is compared") {
  constexpr std::uint64_t NEW = SAMPLE_BASE + 3 * RESERVED_UNIT;
  SampleTape sample(
      {memory_step(Action::free, SAMPLE_BASE, 4096), memory_step(Action::alloc, NEW, 100),
       memory_step(Action::alloc, NEW + PAGE, 100), memory_step(Action::free, NEW + PAGE, 100)});
  REQUIRE(sample.tape);
  sample.manifest.blocks.push_back(
      {{SAMPLE_BASE + RESERVED_UNIT}, 5000, bundle::BlockKind::pinned, 0});
  Layout layout = layout_of(sample.manifest, *sample.tape);
  CHECK(layout.reserved ==
        std::vector<Range>{{SAMPLE_BASE, SAMPLE_BASE + RESERVED_UNIT}, {NEW, NEW + RESERVED_UNIT}});
  CHECK(layout.device ==
        std::vector<Range>{{SAMPLE_BASE, SAMPLE_BASE + PAGE}, {NEW, NEW + 2 * PAGE}});
  CHECK(layout.host ==
        std::vector<Range>{{SAMPLE_BASE + RESERVED_UNIT, SAMPLE_BASE + RESERVED_UNIT + 8192}});
  std::uint64_t second = SAMPLE_BASE + (1 << 20);
  CHECK(layout.at_end == std::vector<Range>{{second, second + 4096}, {NEW, NEW + 100}});
}

TEST_CASE("Pinned memory that lies between a GPU's is mapped with it") {
  SampleTape sample({});
  REQUIRE(sample.tape);
  constexpr std::uint64_t UNIT = RESERVED_UNIT;
  auto add_pinned = [&](std::uint64_t address, std::uint64_t size) {
    sample.manifest.blocks.push_back({{address}, size, bundle::BlockKind::pinned, 0});
  };
  add_pinned(SAMPLE_BASE + 3 * PAGE, 100);
  add_pinned(SAMPLE_BASE + 4096 * 2, 100);          // in a page that is the GPU's
  add_pinned(SAMPLE_BASE + UNIT - 10, 20);          // leads into the next unit,
  add_pinned(SAMPLE_BASE + 2 * UNIT - PAGE, 4096);  // which has another one
  add_pinned(SAMPLE_BASE + 3 * UNIT, 4096);
  Layout layout = layout_of(sample.manifest, *sample.tape);
  CHECK(layout.reserved == std::vector<Range>{{SAMPLE_BASE, SAMPLE_BASE + 2 * UNIT}});
  CHECK(layout.pinned ==
        std::vector<Range>{{SAMPLE_BASE + 3 * PAGE, SAMPLE_BASE + 4 * PAGE},
                           {SAMPLE_BASE + UNIT - PAGE, SAMPLE_BASE + UNIT + PAGE},
                           {SAMPLE_BASE + 2 * UNIT - PAGE, SAMPLE_BASE + 2 * UNIT}});
  CHECK(size_of(layout.device) == 5 * PAGE);
  CHECK(layout.host == std::vector<Range>{{SAMPLE_BASE + 3 * UNIT, SAMPLE_BASE + 3 * UNIT + 4096}});
}

TEST_CASE("What a page held before and after") {
  Manifest manifest = sample_replay();
  PageContents before(manifest.before);
  auto page_at = [&](std::uint64_t address) {
    auto content = before.at(address);
    return content && content->page ? static_cast<int>(*content->page) : content ? -1 : -2;
  };
  CHECK(page_at(SAMPLE_BASE - PAGE) == -2);
  CHECK(page_at(SAMPLE_BASE) == 0);
  CHECK(page_at(SAMPLE_BASE + PAGE) == 1);
  CHECK(page_at(SAMPLE_BASE + 2 * PAGE) == -2);
  CHECK(page_at(SAMPLE_BASE + 4 * PAGE) == -1);  // zeroes
  CHECK(content_after(manifest, SAMPLE_BASE)->page == 0);
  CHECK(content_after(manifest, SAMPLE_BASE + PAGE)->page == 2);
  CHECK_FALSE(content_after(manifest, SAMPLE_BASE + 2 * PAGE));
}

TEST_CASE("What is in a folder, and what is against running it here") {
  SampleTape sample({launch_step(0, 1), launch_step(1, 1), sample_step(Action::drain)});
  REQUIRE(sample.tape);
  sample.manifest.refused = {{"cuLaunchHostFunc", "it calls the program", 2}};
  Contents contents = contents_of(sample.manifest, *sample.tape);
  CHECK((contents.launches == 2 && contents.waits == 1 && contents.blocks[0].bytes == 8192));
  REQUIRE(contents.refused.size() == 2);
  CHECK((contents.refused[0].what == "nccl" && contents.refused[1].count == 2));
  Gpu gpu{"Simulated H200", "13.0", 9, 0, std::uint64_t{1} << 34};
  CHECK(against(sample.manifest, gpu).empty());
  gpu.name = "Simulated H100";
  CHECK(
      against(sample.manifest, gpu) ==
      std::vector<std::string>{"it runs on Simulated H100, but was captured on Simulated H200: its "
                               "times mean nothing"});
  gpu.major = 10;
  CHECK(against(sample.manifest, gpu) ==
        std::vector<std::string>{
            "its code is for compute capability 9.0, and Simulated H100 has 10.0"});
  auto json = list_json(sample.manifest, *sample.tape, {{}, "no GPU"});
  CHECK(json["launches"].size() == 2);
  CHECK(json["here"]["why"][0] == "no GPU");
}
