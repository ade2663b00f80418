#include <algorithm>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "support/sample_calls.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "trace/files/jsonl.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

namespace {

Session session_with_library() {
  Session session;
  session.monotonic_ns = now_ns(CLOCK_MONOTONIC);
  session.libraries.push_back({});
  session.libraries[0].path = "/lib/libcuda.so.1";
  return session;
}

std::unique_ptr<JsonlSink> open_sink(const JsonlOptions& options) {
  auto sink = JsonlSink::open(options);
  if (!sink) FAIL(sink.error().message);
  return std::move(*sink);
}

// Calls at random addresses, which do not shrink to next to nothing when they are compressed.
void make_random_calls(JsonlSink& sink, std::uint64_t first, std::uint64_t count) {
  std::mt19937_64 random(first);
  SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
  for (std::uint64_t id = first; id < first + count; id++) {
    call.id = id;
    call.details.ptr = random();
    call.details.size = random();
    sink.call(call);
  }
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("Names of rotated files") {
  CHECK(rotated_path("t.jsonl", 1) == "t.0001.jsonl");
  CHECK(rotated_path("/a.b/t.jsonl.zst", 12) == "/a.b/t.0012.jsonl.zst");
  CHECK(rotated_path("t", 10'000) == "t.10000");
  CHECK(rotated_path("d/t.zst", 2) == "d/t.0002.zst");
}

TEST_CASE("By size: each file is a trace of its own, and no larger") {
  TemporaryFolder folder;
  std::string name = GENERATE("t.jsonl", "t.jsonl.zst");
  bool compressed = name.ends_with(".zst");
  if (compressed && !is_installed("zstd")) SKIP("zstd is not installed");
  CAPTURE(name);
  JsonlOptions options;
  options.output.path = folder.path() / name;
  options.rotate_size = 64 << 10;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  std::uint64_t count = compressed ? 6000 : 2000;
  make_random_calls(*sink, 1, count / 2);
  Library library;
  library.path = "/lib/libcuda.so.2";
  sink->library(library);
  LossEvent loss;
  loss.reason = Loss::ring_entry;
  loss.count = 5;
  sink->lost(loss);
  make_random_calls(*sink, count / 2 + 1, count / 2);
  Totals totals;
  totals.counts.calls = count;
  totals.duration_ns = now_ns(CLOCK_MONOTONIC);
  totals.accounts = {10, 9, 1, 9};
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 5;
  totals.reason = "duration";
  sink->end(totals);

  auto names = files_in(folder.path());
  // How small lines become is known only once some are compressed: the first files go by a guess.
  REQUIRE(names.size() >= (compressed ? 2 : 3));
  CHECK(sink->written().files == names.size());
  CHECK(sink->written().complete);
  CHECK(sink->written().path == folder.path() / names.back());
  std::uint64_t next = 1, ring_lost = 0, lines_in_all = 0;
  bool knows_library = false;
  for (std::size_t i = 0; i < names.size(); i++) {
    CAPTURE(names[i]);
    CHECK(names[i] == fs::path(rotated_path(name, static_cast<unsigned>(i + 1))));
    std::string path = folder.path() / names[i];
    if (!compressed) CHECK(fs::file_size(path) <= options.rotate_size);
    auto lines = trace_lines(compressed ? output_of("zstd -dc " + path) : file_text(path));
    lines_in_all += lines.size();
    auto &header = lines.front(), &end = lines.back();
    CHECK(header["type"] == "trace");
    CHECK(header["part"] == i + 1);
    CHECK(header["libraries"].size() == (knows_library ? 2 : 1));
    CHECK(end["type"] == "end");
    CHECK(end["part"] == i + 1);
    CHECK(end["lines"] == lines.size());
    bool last = i + 1 == names.size();
    CHECK(end["last"] == last);
    CHECK(end["reason"] == (last ? "duration" : "rotated"));
    CHECK(end.contains("accounts") == last);
    std::uint64_t calls = 0, out_of_order = 0;
    for (const auto& line : lines) {
      if (line.contains("id")) {
        out_of_order += line["id"] != next++;
        calls++;
      }
      if (line["type"] == "library") knows_library = true;
    }
    CHECK(out_of_order == 0);
    CHECK(end["calls"] == calls);
    ring_lost += end["losses"].value("ring_full_entry", 0u);
    if (last) {
      CHECK(end["whole"]["calls"] == count);
      CHECK(end["whole"]["losses"]["ring_full_entry"] == 5);
    }
  }
  CHECK(next == count + 1);
  CHECK(ring_lost == 5);
  CHECK(knows_library);
  CHECK(sink->written().lines == lines_in_all);
}

TEST_CASE("A limited number of files is kept") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.output.keep = 2;
  options.rotate_size = 16 << 10;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  make_random_calls(*sink, 1, 500);
  sink->end({});
  unsigned files = sink->written().files;
  REQUIRE(files > 3);
  std::vector<std::string> expected;
  for (unsigned part : {files - 1, files}) expected.push_back(rotated_path("t.jsonl", part));
  CHECK(files_in(folder.path()) == expected);
}

TEST_CASE("Files are kept up to a size in all, with the one that is being written") {
  TemporaryFolder folder;
  constexpr std::uint64_t EACH = 16 << 10, ALL = 64 << 10;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.output.keep_bytes = ALL;
  options.rotate_size = EACH;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  std::uint64_t most = 0;
  for (std::uint64_t first = 1; first <= 2000; first += 50) {
    make_random_calls(*sink, first, 50);
    sink->flush();
    std::uint64_t sum = 0;
    for (const auto& file : fs::directory_iterator(folder.path())) {
      std::error_code gone;
      auto size = file.file_size(gone);
      sum += gone ? 0 : size;
    }
    most = std::max(most, sum);
  }
  sink->end({});
  CHECK(most <= ALL);
  unsigned files = sink->written().files;
  REQUIRE(files > 8);
  std::vector<std::string> expected;
  for (unsigned part = files - 3; part <= files; part++)
    expected.push_back(rotated_path("t.jsonl", part));
  CHECK(files_in(folder.path()) == expected);
}

TEST_CASE("Whichever of --keep and --keep-size keeps less decides") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.output.keep = 2;
  options.output.keep_bytes = 1 << 20;
  options.rotate_size = 16 << 10;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  make_random_calls(*sink, 1, 500);
  sink->end({});
  CHECK(files_in(folder.path()).size() == 2);
}

TEST_CASE("The name of a rotated file may say when it begins") {
  CHECK(rotated_path("/a/t_%t.jsonl.zst", 3, "20261127T053600") ==
        "/a/t_20261127T053600.0003.jsonl.zst");
  CHECK(rotated_path("t.jsonl", 3, "20261127T053600") == "t.0003.jsonl");
  CHECK(rotated_path("%t/t.jsonl", 3, "20261127T053600") == "%t/t.0003.jsonl");
  TemporaryFolder folder;
  for (const char* name :
       {"t_20261127T053600.0007.jsonl", "t_20251127T053600.0012.jsonl", "t_20261127.0013.jsonl",
        "t_20261127x053600.0014.jsonl", "t_%t.0015.jsonl", "u_20261127T053600.0016.jsonl"})
    std::ofstream(folder.path() / name) << "a file";
  std::string path = folder.path() / "t_%t.jsonl";
  auto files = rotated_files(path);
  REQUIRE(files.size() == 2);
  CHECK(files[0].number == 7);
  CHECK(files[1].number == 12);
  CHECK(files[1].path == folder.path() / "t_20251127T053600.0012.jsonl");

  JsonlOptions options;
  options.output.path = path;
  options.output.keep = 1;
  options.rotate_size = 1 << 20;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  sink->end({});
  files = rotated_files(path);
  REQUIRE(files.size() == 1);
  CHECK(files[0].number == 13);
  CHECK(files[0].path == sink->written().path);
  CHECK(fs::exists(folder.path() / "t_20261127.0013.jsonl"));
}

TEST_CASE(
    "A later trace of that name goes on where the earlier one ended, and keeps a number of files "
    "in all") {
  TemporaryFolder folder;
  std::string name = GENERATE("t.jsonl", "t.0009.jsonl.zst");
  CAPTURE(name);
  JsonlOptions options;
  options.output.path = folder.path() / name;
  options.rotate_size = 1 << 20;
  for (const char* other : {"u.0007.jsonl", "t.jsonl", "t.0x.jsonl", "t.12.jsonl"})
    std::ofstream(folder.path() / other) << "of others";
  auto others = files_in(folder.path());
  for (unsigned number = 1; number <= 3; number++) {
    auto sink = open_sink(options);
    CHECK(sink->written().path == folder.path() / rotated_path(name, number));
  }
  options.output.keep = 2;
  open_sink(options)->begin(session_with_library());
  for (unsigned number : {3u, 4u}) others.push_back(rotated_path(name, number));
  std::sort(others.begin(), others.end());
  CHECK(files_in(folder.path()) == others);
}

TEST_CASE("By time, also while nothing happens") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_ns = 500'000'000;  // long enough for a call on a busy machine
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  make_random_calls(*sink, 1, 1);
  sink->flush();
  std::this_thread::sleep_for(std::chrono::milliseconds(510));
  sink->flush();
  make_random_calls(*sink, 2, 1);
  Totals totals;
  totals.duration_ns = 60'000'000;
  totals.counts.calls = 2;
  sink->end(totals);
  CHECK(files_in(folder.path()) == std::vector<std::string>{"t.0001.jsonl", "t.0002.jsonl"});
  auto first = trace_lines(file_text(folder.path() / "t.0001.jsonl"));
  auto second = trace_lines(file_text(folder.path() / "t.0002.jsonl"));
  CHECK(types_of(first) == std::vector<std::string>{"trace", "memory", "end"});
  CHECK(types_of(second) == std::vector<std::string>{"trace", "memory", "end"});
  CHECK(first[2]["duration_ns"] >= options.rotate_ns);
  CHECK(second[0]["since"] == first[2]["ts"]);
  CHECK(second[1]["id"] == 2);
  // It began when the trace was over, which then lasted until it did.
  CHECK(second[2]["whole"]["duration_ns"] == second[0]["since"]);
  CHECK(second[2]["duration_ns"] == 0);
}

TEST_CASE("A file by time covers that time, however late its calls are written") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_ns = 20'000'000;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
  call.id = 1;
  call.ts = 1'000'000;  // what was called later may still lie in a ring
  call.duration = 500;
  sink->call(call);
  sink->flush();
  CHECK(files_in(folder.path()) == std::vector<std::string>{"t.0001.jsonl"});
  sink->flush();  // nothing came
  sink->end({});
  auto first = trace_lines(file_text(folder.path() / "t.0001.jsonl"));
  CHECK(files_in(folder.path()) == std::vector<std::string>{"t.0001.jsonl", "t.0002.jsonl"});
  CHECK(first.back()["duration_ns"] >= options.rotate_ns);
}

TEST_CASE(
    "A file begins when the calls in the one before it ended, however late they are written") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_size = 64 << 10;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // by which all of them are late
  SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
  for (call.id = 1; call.id <= 1000; call.id++) {
    call.ts = call.id * 1000;
    call.duration = 500;
    sink->call(call);
  }
  Totals totals;
  totals.duration_ns = 10'000'000;
  sink->end(totals);
  auto first = trace_lines(file_text(folder.path() / "t.0001.jsonl"));
  auto second = trace_lines(file_text(folder.path() / "t.0002.jsonl"));
  std::uint64_t last = first[first.size() - 2]["ts"], next = second[1]["ts"];
  CHECK(second[0]["since"] == last + 500);
  CHECK(next == last + 1000);
  CHECK(first.back()["ts"] == second[0]["since"]);
}

TEST_CASE("A trace that would rotate but does not is one file, and is whole") {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_size = 1 << 20;
  auto sink = open_sink(options);
  sink->begin(session_with_library());
  Totals totals;
  totals.losses[static_cast<std::size_t>(Loss::bad_record)] = 2;
  sink->end(totals);
  auto lines = trace_lines(file_text(folder.path() / "t.0001.jsonl"));
  CHECK(lines.back()["last"] == true);
  CHECK(lines.back()["losses"]["bad_record"] == 2);
  CHECK(!lines.back().contains("whole"));
}

TEST_CASE("A file too small for a trace is refused") {
  JsonlOptions options;
  options.output.path = "/nonexistent/t.jsonl";
  options.rotate_size = 100;
  auto sink = JsonlSink::open(options);
  REQUIRE(!sink);
  CHECK(sink.error().message ==
        "--rotate-size is too small: a file of a trace takes at least 16 KiB");
  CHECK(sink.error().exit_code == exit_code::USAGE);
}
