#include "trace/files/output.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;
using Types = std::vector<std::string>;

TEST_CASE("A trace is a header, the events in order, and an end") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  Process process;
  process.pid = 7;
  sink->process(process);
  make_calls(*sink, 1, 2);
  sink->library({});
  LossEvent loss;
  loss.count = 3;
  sink->lost(loss);
  sink->end(totals_of(2));
  std::string text = file_text(path);
  auto lines = trace_lines(text);
  CHECK(types_of(lines) == Types{"trace", "process", "kernel", "kernel", "library", "lost", "end"});
  CHECK(lines.back()["lines"] == 7);
  TraceWritten written = sink->written();
  CHECK(written.path == path);
  CHECK(written.complete);
  CHECK(written.lines == 7);
  CHECK(written.bytes == text.size());
  CHECK(written.lost == 0);
  CHECK(written.files == 1);
}

TEST_CASE("Lines reach the file while nothing more happens") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  make_calls(*sink, 1, 3);
  flush_for(*sink, 150);
  CHECK(types_of(trace_lines(file_text(path))) == Types{"trace", "kernel", "kernel", "kernel"});
}

TEST_CASE("A trace larger than all blocks together arrives whole") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  constexpr std::uint64_t COUNT = 120'000;  // 24 MiB; there are 16 blocks of 1 MiB
  make_calls(*sink, 1, COUNT);
  sink->end(totals_of(COUNT));
  std::ifstream in(path);
  std::uint64_t next = 1, lines = 0;
  for (std::string line; std::getline(in, line); lines++) {
    auto expected = "{\"id\":" + std::to_string(next) + ",";
    if (line.starts_with(expected)) next++;
  }
  CHECK(lines == COUNT + 2);
  CHECK(next == COUNT + 1);
}

TEST_CASE("A text larger than a block is cut, and its line is written") {
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  Process process;
  process.cmdline = std::string(3 << 20, 'x');
  make_calls(*sink, 1, 1);
  sink->process(process);
  make_calls(*sink, 2, 1);
  sink->end(totals_of(2));
  auto lines = trace_lines(file_text(path));
  CHECK(types_of(lines) == Types{"trace", "kernel", "process", "kernel", "end"});
  CHECK(lines[2]["cmdline"].get<std::string>() == std::string(4096, 'x') + "…");
}

TEST_CASE("A compressed trace that was cut off can be read up to there") {
  if (!is_installed("zstd")) SKIP("zstd is not installed");
  TemporaryFolder folder;
  auto path = folder.path() / "t.jsonl.zst";
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  flush_until_larger(*sink, path, 0);
  auto header = std::filesystem::file_size(path);
  make_calls(*sink, 1, 100);
  flush_until_larger(*sink, path, header);  // when the frame is a second old
  // What is there if cudabpf is killed now.
  auto lines = trace_lines(output_of("zstd -dc " + path.string()));
  CHECK(lines.size() == 101);
  CHECK(lines.back()["id"] == 100);
  std::size_t whole_frames = file_text(path).size();
  make_calls(*sink, 101, 200);
  sink->end(totals_of(300));

  auto cut = folder.path() / "cut.zst";
  std::string bytes = file_text(path);
  REQUIRE(bytes.size() > whole_frames + 20);
  for (std::size_t size : {whole_frames + 1, whole_frames + 20, bytes.size() - 1}) {
    folder.write("cut.zst", std::string_view(bytes).substr(0, size));
    std::string text = output_of("zstd -dc " + cut.string() + " 2>/dev/null");
    auto first = trace_lines(text.substr(0, text.rfind('\n') + 1));
    CHECK(first.size() >= 101);
    CHECK(first[100]["id"] == 100);
  }
  CHECK(trace_lines(output_of("zstd -dc " + path.string())).size() == 302);
}
