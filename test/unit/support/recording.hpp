// A flight recorder in a test, and what comes of it.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sink/flight_recorder.hpp"
#include "support/open_calls.hpp"
#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

namespace recording {

using namespace cudabpf;
namespace fs = std::filesystem;
using Types = std::vector<std::string>;

// As the reader's thread does every 0.1 s.
inline void look(FlightRecorder& recorder, const OpenNow& open = OpenNow()) {
  recorder.open_calls(open);
  recorder.flush();
}

// A recorder, and what it reported of its dumps.
class Recording {
 public:
  explicit Recording(const fs::path& path, FlightRecorder::Options options = {}) {
    options.path = [path] { return path.string(); };
    auto opened = FlightRecorder::open(
        std::move(options), [this](const Result<FlightRecorder::Dump>& dump) { note(dump); });
    if (!opened) FAIL(opened.error().message);
    recorder = std::move(*opened);
  }

  void note(const Result<FlightRecorder::Dump>& dump) {
    std::lock_guard lock(mutex_);
    (dump ? dumps.emplace_back(*dump), 0 : (errors.push_back(dump.error()), 0));
    came_.notify_all();
  }

  // The reader's thread goes on until this many dumps were reported.
  bool flush_until(std::size_t reported) {
    for (int i = 0; i < 1000; i++) {
      look(*recorder);
      std::unique_lock lock(mutex_);
      if (came_.wait_for(lock, std::chrono::milliseconds(10),
                         [&] { return dumps.size() + errors.size() >= reported; }))
        return true;
    }
    return false;
  }
  FlightRecorder::Dump dump() {
    std::size_t before = dumps.size();
    recorder->write_soon();
    REQUIRE(flush_until(dumps.size() + errors.size() + 1));
    REQUIRE(dumps.size() == before + 1);
    return dumps.back();
  }

  std::unique_ptr<FlightRecorder> recorder;
  std::vector<FlightRecorder::Dump> dumps;
  std::vector<Error> errors;

 private:
  std::mutex mutex_;
  std::condition_variable came_;
};

inline void make_calls(Sink& sink, std::uint64_t first, std::uint64_t count, int result = 0) {
  std::mt19937_64 random(first);
  SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
  for (std::uint64_t id = first; id < first + count; id++) {
    call.id = id;
    call.details.ptr = random();
    call.result = result;
    sink.call(call);
  }
}

inline std::vector<nlohmann::json> lines_in(const fs::path& path) {
  return trace_lines(output_of("zstd -dc " + path.string()));
}

inline Process process_of(std::uint32_t pid, Process::Op op, const std::string& comm) {
  Process process;
  process.op = op;
  process.ts = pid;
  process.pid = pid;
  process.comm = comm;
  process.container_runtime = "docker";
  process.container_id = "8f2b";
  return process;
}

// As the file's own last line says, and as it holds.
inline void check_books(const std::vector<nlohmann::json>& lines) {
  REQUIRE(lines.size() >= 2);
  const auto &header = lines.front(), &end = lines.back();
  CHECK(header["type"] == "trace");
  CHECK(end["type"] == "end");
  CHECK(end["lines"] == lines.size());
  CHECK(std::count_if(lines.begin(), lines.end(), [](const auto& line) {
          return line.contains("id");
        }) == end["calls"].get<std::ptrdiff_t>());
  CHECK(end["ts"].get<std::uint64_t>() ==
        header.value("since", std::uint64_t{0}) + end["duration_ns"].get<std::uint64_t>());
  CHECK_FALSE(header.contains("part"));
  CHECK_FALSE(end.contains("part"));
  CHECK_FALSE(end.contains("last"));
  CHECK_FALSE(end.contains("accounts"));
}

// Of a dump of nothing but many calls: the header, the first and the last call and the end. Of all
// others the ids are checked, and one in fifty is parsed: to parse all takes most of a test's time.
inline std::vector<nlohmann::json> few_lines_in(const fs::path& path) {
  constexpr std::string_view ID = "{\"id\":";
  std::string text = output_of("zstd -dc " + path.string()), parsed;
  std::size_t lines = 0, calls = 0, begin = 0, last = 0;
  std::string_view line, before;
  for (std::size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    before = std::exchange(line, std::string_view(text).substr(begin, end + 1 - begin));
    if (lines++ % 50 < 2) parsed += line;
    if (!line.starts_with(ID)) continue;
    std::size_t id = 0;
    std::from_chars(line.data() + ID.size(), line.data() + line.size(), id);
    if ((calls++ && id != last + 1) || !line.ends_with("}\n"))
      FAIL("after " << last << ": " << line);
    last = id;
  }
  REQUIRE(begin == text.size());
  auto all = trace_lines(parsed.append(before).append(line));
  std::vector<nlohmann::json> few{all[0], all[1], *(all.end() - 2), all.back()};
  CHECK(few.back()["lines"] == lines);
  CHECK(few.back()["calls"] == calls);
  CHECK(lines == calls + 2);
  few.back()["lines"] = few.size();
  few.back()["calls"] = 2;
  check_books(few);
  few.back()["lines"] = lines;
  few.back()["calls"] = calls;
  return few;
}

inline FlightRecorder::Options short_ones() {
  FlightRecorder::Options options;
  options.keep_ns = FlightRecorder::SHORTEST_NS;
  return options;
}

}  // namespace recording
