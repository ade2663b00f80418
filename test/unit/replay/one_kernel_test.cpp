// Which launches of a kernel, and which memory, --export takes.
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "replay/export/choice.hpp"
#include "replay/export/granules.hpp"
#include "replay/export/launch_program.hpp"
#include "replay/export/pointers.hpp"
#include "sample_tape.hpp"

using namespace cudabpf;
using namespace cudabpf::replay;

namespace {

std::string words(std::initializer_list<std::uint64_t> all) {
  std::string bytes;
  for (std::uint64_t word : all) bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  return bytes;
}

}  // namespace

TEST_CASE("Launches are chosen by their shapes, then by their inputs, then by their places") {
  std::vector<Candidate> same;
  for (std::size_t i = 0; i < 9; i++) same.push_back({10 * i, "1x1", "a"});
  CHECK(chosen_steps(same, 3) == std::vector<std::size_t>{0, 40, 80});
  CHECK(chosen_steps(same, 1) == std::vector<std::size_t>{0});
  CHECK(chosen_steps(same, 99).size() == 9);
  CHECK(chosen_steps({}, 4).empty());
  auto shapes = same;
  shapes[1].shape = "2x1";
  CHECK(chosen_steps(shapes, 2) == std::vector<std::size_t>{0, 10});
  auto inputs = same;
  inputs[3].inputs = "b";
  CHECK(chosen_steps(inputs, 2) == std::vector<std::size_t>{0, 30});
}

TEST_CASE("What is live at a step is known from the tape before it") {
  constexpr std::uint64_t NEW = SAMPLE_BASE + (8 << 20);
  SampleTape sample({launch_step(0, 1), memory_step(Action::free, SAMPLE_BASE, 4096),
                     memory_step(Action::alloc, NEW, 512), launch_step(0, 1)});
  REQUIRE(sample.tape);
  LiveBlocks before(sample.manifest, *sample.tape, 0), after(sample.manifest, *sample.tape, 3);
  CHECK(before.at(SAMPLE_BASE + 4095) == 0U);
  CHECK_FALSE(before.at(SAMPLE_BASE + 4096));
  CHECK_FALSE(before.at(SAMPLE_BASE - 1));
  CHECK_FALSE(before.at(NEW));
  CHECK_FALSE(after.at(SAMPLE_BASE));
  CHECK(after.at(NEW + 511) == 1U);
}

TEST_CASE("Words that are addresses in live memory are pointers, aligned or not") {
  SampleTape sample({launch_step(0, 1)});
  REQUIRE(sample.tape);
  LiveBlocks live(sample.manifest, *sample.tape, 0);
  std::string bytes = words({7, SAMPLE_BASE + 8, ~std::uint64_t{0}});
  auto found = pointers_in(bytes, live, true);
  REQUIRE(found.size() == 1);
  CHECK((found[0].offset == 8 && found[0].to == SAMPLE_BASE + 8 && found[0].block == 0));
  bytes = "x" + words({SAMPLE_BASE + (1 << 20)}) + "end";
  CHECK(pointers_in(bytes, live, true).empty());
  found = pointers_in(bytes, live, false);
  REQUIRE(found.size() == 1);
  CHECK((found[0].offset == 1 && found[0].block == 1));
  CHECK(pointers_in("short", live, false).empty());
}

TEST_CASE("Ranges that are near each other are joined, within a block") {
  std::vector<Range> blocks{{0, 100}, {200, 300}};
  std::vector<Range> ranges{{10, 20}, {25, 30}, {90, 210}, {290, 400}};
  CHECK(joined(ranges, blocks, 6) ==
        std::vector<Range>{{10, 30}, {90, 100}, {200, 210}, {290, 300}});
  CHECK(joined(ranges, blocks, 1).size() == 5);
  CHECK(joined(ranges, blocks, 1000) == std::vector<Range>{{10, 100}, {200, 300}});
  CHECK(joined({}, blocks, 8).empty());
}

TEST_CASE("Bytes that differ are named as whole values") {
  std::string a(64, 'a'), b = a;
  Range range{0x1004, 0x1044};
  CHECK(differences_between(a, b, range).empty());
  b[0] = b[5] = b[63] = 'b';
  CHECK(differences_between(a, b, range) == std::vector<Range>{{0x1004, 0x1010}, {0x1040, 0x1044}});
  std::string many(1 << 20, 'a'), other = many;
  for (std::size_t i = 0; i < other.size(); i += 64) other[i] = 'b';
  Range large{0, 1 << 20};
  CHECK(differences_between(many, other, large) == std::vector<Range>{large});
}

TEST_CASE("A fingerprint differs where a byte does") {
  std::string page(GRANULE, '\0');
  std::uint64_t zeroes = fingerprint_of(page);
  for (std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{4095}}) {
    std::string other = page;
    other[at] = 1;
    CHECK(fingerprint_of(other) != zeroes);
  }
  CHECK(fingerprint_of(page) == zeroes);
  CHECK(fingerprint_of(std::string(5, '\0')) != fingerprint_of(std::string(6, '\0')));
}

TEST_CASE("A launch's program has foreign names as texts that nothing in them ends") {
  Manifest manifest = sample_replay();
  manifest.kernels[0].name = "a\"; system(\"x\");\n\\?";
  manifest.modules[0].variables = {{"v\"", {SAMPLE_BASE}, 4, bundle::Extent{0, 0}, {}}};
  manifest.images = {{std::string(64, 'a'), bundle::ImageKind::cubin, 4}};
  manifest.data_size = 77;
  SampleTape sample({launch_step(0, 3)});
  REQUIRE(sample.tape);
  std::string text = launch_program({&manifest, &*sample.tape, {Occurrence{0, {}, {}}}});
  for (const char* row :
       {"{0, \"a\\042; system(\\042x\\042);\\012\\134\\077\"},",
        "{0, \"v\\042\", 0x7f0000000000, 4, 0},",
        "{0, 0, {3, 1, 1}, {32, 1, 1}, 0, false, 0, 0, 0, 0},", "DATA_SIZE = 77;"})
    CHECK(text.find(row) != std::string::npos);
}
