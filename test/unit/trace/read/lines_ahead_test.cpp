#include "trace/read/lines_ahead.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr int LINES = 20'000;

// As cudabpf writes it; one in a hundred lines has a name that no other has.
std::string line_of(int i) {
  std::string kernel = fmt::format("kernel_{}", i % 100 ? i % 7 : i);
  return fmt::format(
      R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},"duration_us":1.500,)"
      R"("pid":7,"tid":8,"ret":0,"kernel":"{}","grid":[{},1,1]}})",
      i + 1, 1000 * i, kernel, i % 64 + 1);
}

struct Opened {
  std::unique_ptr<TraceSource> source;
  TraceSource::Block first;
};

Opened opened(const std::string& path) {
  auto file = open_trace_file(path);
  REQUIRE(file);
  auto source = TraceSource::open(std::move(*file), path);
  REQUIRE(source);
  Opened opened{std::move(*source), {}};
  REQUIRE(opened.source->next(opened.first));
  return opened;
}

}  // namespace

TEST_CASE("Lines that are scanned ahead are those that a parser reads one by one") {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < LINES; i++) text += line_of(i) + (i % 50 ? "\n" : "\n\n");
  auto [source, first] = opened(folder.write("trace", text));

  LineParser parser, one_by_one;
  LinesAhead ahead(*source, std::move(first), 0, 0, parser);
  LinesAhead::Batch batch;
  int i = 0;
  std::size_t scanned = 0;
  std::uint64_t number = 1;
  while (ahead.next(batch)) {
    for (std::size_t at = 0; at < batch.count; at++, i++) {
      auto& item = batch.items[at];
      scanned += item.scanned;
      std::string padded = line_of(i) + std::string(LineParser::PADDING, '\n');
      Line expected;
      REQUIRE(one_by_one.parse({padded.data(), padded.size() - LineParser::PADDING}, expected));
      REQUIRE((item.scanned || parser.read_any(item.line.text, item.line)));
      bool same = item.whole && item.line.number == number && item.line.text == line_of(i) &&
                  item.line.kind == LineKind::call && item.line.id == expected.id &&
                  item.line.ts == expected.ts && item.line.duration == expected.duration &&
                  item.line.grid == expected.grid && item.line.kernel == expected.kernel &&
                  item.line.present == expected.present;
      if (!same) FAIL("line " << i << ": " << item.line.number << ' ' << item.line.text);
      number += i % 50 ? 1 : 2;  // blank lines count
    }
  }
  CHECK(i == LINES);
  CHECK(scanned > 0);
  CHECK(scanned < LINES);  // at least the first had a name that was new
}

TEST_CASE("What a file ends with may be half a line") {
  TemporaryFolder folder;
  auto [source, first] = opened(folder.write("trace", line_of(0) + "\n\n" + R"({"id":2,"ty)"));
  LineParser parser;
  LinesAhead ahead(*source, std::move(first), 0, 4, parser);
  LinesAhead::Batch batch;
  REQUIRE(ahead.next(batch));
  REQUIRE(batch.count == 2);
  CHECK(batch.items[0].whole);
  CHECK(batch.items[0].line.number == 5);
  CHECK_FALSE(batch.items[1].whole);
  CHECK_FALSE(batch.items[1].scanned);
  CHECK(batch.items[1].line.number == 7);
  CHECK(batch.items[1].line.text == R"({"id":2,"ty)");
  CHECK_FALSE(ahead.next(batch));
}

TEST_CASE("A reader need not read all lines") {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < LINES; i++) text += line_of(i) + '\n';
  auto [source, first] = opened(folder.write("trace", text));
  LineParser parser;
  LinesAhead ahead(*source, std::move(first), 0, 0, parser);
  LinesAhead::Batch batch;
  CHECK(ahead.next(batch));
}
