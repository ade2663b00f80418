// A disk that is full, and gets space again.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;

namespace {

// While it lives, files cannot grow beyond `bytes`, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("Nothing can be written: all is counted, and the trace is known to be incomplete") {
  QuietStderr quiet;
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) SKIP("/dev/full cannot be opened");
  auto sink = open_sink(to_stream(full.get()));
  sink->begin(session_now());
  make_calls(*sink, 1, 10'000);
  sink->end(totals_of(10'000));
  TraceWritten written = sink->written();
  CHECK(!written.complete);
  CHECK(written.lost == 10'000);
  CHECK(written.lines == 0);
}

TEST_CASE("A full disk loses whole lines, says so, and is written to again") {
  QuietStderr quiet;
  TemporaryFolder folder;
  std::string name = GENERATE("t.jsonl", "t.jsonl.zst");
  bool compressed = name.ends_with(".zst");
  if (compressed && !is_installed("zstd")) SKIP("zstd is not installed");
  CAPTURE(name);
  auto path = folder.path() / name;
  auto text_now = [&] {
    return compressed ? output_of("zstd -dc " + path.string() + " 2>/dev/null") : file_text(path);
  };
  auto sink = open_sink(to_path(path));
  sink->begin(session_now());
  std::uint64_t lost = 0;
  {
    // Room for the header and some calls; compressed, for the header alone.
    FileSizeLimit limit(compressed ? 500 : 50'000);
    make_calls(*sink, 1, 1000);
    if (compressed) make_calls(*sink, 1001, 10);  // a frame is written when it is a second old
    flush_for(*sink, compressed ? 1200 : 150);
    auto lines = trace_lines(text_now());  // even now, every line is whole
    REQUIRE(lines.size() <= 1 + 1000);
    lost = 1 + 1000 - lines.size();
    CHECK(lost >= 500);
    if (!compressed) CHECK(lost < 1000);
    if (!compressed) {
      make_calls(*sink, 1001, 10);  // none of them fits
      flush_for(*sink, 150);
    }
    lost += 10;
  }
  wait_ms(100);
  make_calls(*sink, 2001, 5);
  Totals totals = totals_of(1015);
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 4;
  sink->end(totals);

  auto lines = trace_lines(text_now());
  // Calls that were kept, and a line that says so wherever some are missing. On a nearly full disk,
  // that line may fit where no calls do, so there may be two of them.
  std::size_t kept = 1010 - lost;
  REQUIRE(lines.size() >= 1 + kept + 1 + 5 + 1);
  for (std::size_t i = 0; i < kept; i++) REQUIRE(lines[1 + i]["id"] == i + 1);
  std::uint64_t counted = 0;
  std::size_t at = 1 + kept;
  for (; lines[at]["type"] == "lost"; at++) {
    CHECK(lines[at]["reason"] == "output_failed");
    CHECK(lines[at]["severity"] == "lost");
    CHECK(lines[at]["since"] < lines[at]["until"]);
    counted += lines[at]["count"].get<std::uint64_t>();
  }
  CHECK(counted == lost);
  REQUIRE(lines.size() == at + 5 + 1);
  for (std::size_t i = 0; i < 5; i++) CHECK(lines[at + i]["id"] == 2001 + i);
  auto& end = lines.back();
  CHECK(end["losses"] == nlohmann::json({{"ring_full_entry", 4}, {"output_failed", lost}}));
  CHECK(end["lines"] == lines.size());
  CHECK(sink->written().complete);
  CHECK(sink->written().lost == lost);
  CHECK(sink->written().lines == lines.size());
}

TEST_CASE("A stream that cannot be cut back gets the rest of a line later") {
  QuietStderr quiet;
  TemporaryFolder folder;
  auto path = folder.path() / "redirected";
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(fd);
  auto sink = open_sink(to_stream(fd.get()));
  sink->begin(session_now());
  std::uint64_t lost = 0;
  {
    FileSizeLimit limit(20'003);
    make_calls(*sink, 1, 1000);
    flush_for(*sink, 150);
    std::string text = file_text(path);
    // The header's line has an end, that of the last call has none yet.
    lost = 1000 - static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    REQUIRE(text.size() == 20'003);
    REQUIRE(text.back() != '\n');
  }
  wait_ms(100);
  sink->end(totals_of(1000));
  auto lines = trace_lines(file_text(path));
  CHECK(lines.size() == 1 + (1000 - lost) + 1 + 1);
  CHECK(lines[lines.size() - 3]["id"] == 1000 - lost);
  CHECK(lines[lines.size() - 2]["count"] == lost);
  CHECK(lines.back()["lines"] == lines.size());
}
