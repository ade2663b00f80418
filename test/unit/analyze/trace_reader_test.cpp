#include "analyze/trace_reader.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>

#include "support/temporary_folder.hpp"
#include "trace/files/frames.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string HEADER = R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0"})"
                           "\n";
const std::string END = R"({"type":"end","ts":900,"duration_ns":900,"calls":2})"
                        "\n";

std::string call(int id) {
  return R"({"id":)" + std::to_string(id) + R"(,"type":"init","name":"cuInit","ts":)" +
         std::to_string(id * 10) + R"(,"duration_us":0.005})" + "\n";
}

struct Read {
  TraceFacts facts;
  std::vector<std::uint64_t> ids;  // of the calls
};

Read read(const std::vector<std::string>& paths, bool expects_more = false) {
  auto reader = TraceReader::open(paths);
  if (!reader) FAIL(reader.error().message);
  if (expects_more) (*reader)->expect_more([](const TraceFacts&) { return true; });
  Read read;
  for (;;) {
    auto line = (*reader)->next();
    if (!line) FAIL(line.error().message);
    if (!*line) break;
    if ((*line)->kind == LineKind::call) read.ids.push_back((*line)->id);
  }
  read.facts = (*reader)->facts();
  return read;
}

std::string refusal(const std::string& path) {
  auto reader = TraceReader::open({path});
  return reader ? "none" : reader.error().message;
}

using Ids = std::vector<std::uint64_t>;

// The reader's caller does not want the rest at the second callback; `look` sees each callback.
void check_given_up(const std::filesystem::path& path,
                    const std::function<void(std::uint64_t read, std::uint64_t size)>& look) {
  int callbacks = 0;
  auto reader = TraceReader::open({path}, [&](std::uint64_t read, std::uint64_t size) {
    look(read, size);
    return ++callbacks < 2;
  });
  REQUIRE(reader);
  auto more = (*reader)->next();
  while (more && *more) more = (*reader)->next();
  REQUIRE_FALSE(more);
  CHECK_THAT(more.error().message, ContainsSubstring("given up"));
  CHECK(callbacks == 2);
}

}  // namespace

TEST_CASE("A whole trace, plain and compressed") {
  TemporaryFolder folder;
  std::string text = HEADER + call(1) + call(2) + END;
  for (const auto& path :
       {folder.write("t.jsonl", text), folder.write("t.jsonl.zst", Frames::frame_of(text)),
        folder.write("no-ending", Frames::frame_of(HEADER) + Frames::frame_of(call(1) + call(2)) +
                                      Frames::frame_of(END))}) {
    Read whole = read({path.string()});
    CHECK(whole.ids == Ids{1, 2});
    CHECK(whole.facts.lines == 4);
    CHECK(whole.facts.bytes == text.size());
    CHECK(whole.facts.end == end_in(END));
    CHECK(whole.facts.cut_off.empty());
    CHECK(whole.facts.duration() == 900);
    CHECK(whole.facts.header == header_in(HEADER));
  }
}

TEST_CASE("More lines than a block has, and lines longer than one") {
  TemporaryFolder folder;
  std::string text = HEADER;
  Ids ids;
  for (int id = 1; id <= 40'000; id++) {
    text += call(id);
    ids.push_back(static_cast<std::uint64_t>(id));
  }
  text += R"({"type":"process","op":"start","pid":1,"cmdline":")" + std::string(3 << 20, 'x') +
          "\"}\n" + call(40'001);
  ids.push_back(40'001);
  CHECK(read({folder.write("t.jsonl", text + END)}).ids == ids);
  CHECK(read({folder.write("t.zst", Frames::frame_of(text + END))}).ids == ids);
}

TEST_CASE("A line without end is a bad one, and takes no more memory than the longest") {
  TemporaryFolder folder;
  std::string text = HEADER + call(1) + R"({"id":2,"name":")" +
                     std::string(TraceSource::MAX_LINE * 2, 'x') + "\"}\n" + call(3) + END;
  for (const auto& path :
       {folder.write("t", text), folder.write("t.zst", Frames::frame_of(text))}) {
    Read long_line = read({path.string()});
    CHECK(long_line.ids == Ids{1, 3});
    CHECK(long_line.facts.malformed == 1);
    CHECK(long_line.facts.bytes < TraceSource::MAX_LINE + (2 << 20));
    CHECK(long_line.facts.first_malformed == std::vector{path.string() + ":3"});
  }
  std::string longest = R"({"id":2,"name":")";
  longest += std::string(TraceSource::MAX_LINE - longest.size() - 2, 'x') + "\"}";
  CHECK(read({folder.write("t", HEADER + call(1) + longest + "\n" + END)}).ids == Ids{1, 2});
}

TEST_CASE("A trace that was cut off") {
  TemporaryFolder folder;
  SECTION("between lines") {
    Read cut = read({folder.write("t", HEADER + call(1))});
    CHECK(cut.ids == Ids{1});
    REQUIRE(cut.facts.cut_off.size() == 1);
    CHECK_THAT(cut.facts.cut_off[0], ContainsSubstring("it has no end"));
    CHECK(cut.facts.duration() == 15);  // up to the last line seen
  }
  SECTION("within a line") {
    std::string text = HEADER + call(1) + call(2);
    for (std::size_t less = 2; less < call(2).size(); less++) {
      Read cut = read({folder.write("t", text.substr(0, text.size() - less))});
      CHECK(cut.ids == Ids{1});
      CHECK(cut.facts.malformed == 0);
      REQUIRE(cut.facts.cut_off.size() == 1);
      CHECK_THAT(cut.facts.cut_off[0], ContainsSubstring("it ends within line 3"));
    }
  }
  SECTION("where only the newline is missing") {
    Read cut = read({folder.write("t", HEADER + call(1) + END.substr(0, END.size() - 1))});
    CHECK(cut.ids == Ids{1});
    CHECK(cut.facts.cut_off.empty());
  }
  SECTION("within a compressed frame") {
    std::string frame = Frames::frame_of(call(2) + call(3));
    std::string path =
        folder.write("t", Frames::frame_of(HEADER + call(1)) + frame.substr(0, frame.size() - 3));
    Read cut = read({path});
    REQUIRE(!cut.ids.empty());
    CHECK(cut.ids[0] == 1);
    REQUIRE(cut.facts.cut_off.size() == 1);
    CHECK_THAT(cut.facts.cut_off[0], ContainsSubstring("within a compressed frame"));
  }
}

TEST_CASE("A trace of which more is to come lacks nothing by having no end, but all else") {
  TemporaryFolder folder;
  std::string text = HEADER + call(1) + call(2), frame = Frames::frame_of(call(2) + call(3));
  auto faults = [&](const std::string& written) {
    return read({folder.write("t", written)}, true).facts;
  };
  CHECK(faults(text).cut_off.empty());
  CHECK(faults(text.substr(0, text.size() - 5)).cut_off.empty());
  std::string compressed = Frames::frame_of(HEADER + call(1)) + frame;
  CHECK(faults(compressed.substr(0, compressed.size() - 3)).cut_off.empty());
  CHECK(faults(HEADER + "{\n" + call(1)).malformed == 1);
  compressed[compressed.size() - frame.size()] ^= 1;  // no frame begins so
  CHECK(faults(compressed).cut_off.size() == 1);
}

TEST_CASE("What cannot be read is counted, and where it was is reported") {
  TemporaryFolder folder;
  Read read_of = read({folder.write(
      "t", HEADER + call(1) + "{\"id\":\n\n" + call(2) + "not JSON\n" + call(3) +
               R"({"type":"weather","op":"rain","degrees":[1,{"a":2}]})" + "\n" + END)});
  CHECK(read_of.ids == Ids{1, 2, 3});
  CHECK(read_of.facts.malformed == 2);
  CHECK(read_of.facts.unknown == 1);
  std::string path = (folder.path() / "t").string();
  CHECK(read_of.facts.first_malformed == std::vector{path + ":3", path + ":6"});
}

TEST_CASE("Losses are those that the lines report") {
  TemporaryFolder folder;
  auto lost = [](const std::string& reason, const std::string& count) {
    return R"({"type":"lost","reason":")" + reason + R"(","severity":"lost","count":)" + count +
           "}\n";
  };
  auto losses =
      read({folder.write("t", HEADER + lost("ring_full_entry", "7") + lost("ring_full_entry", "5") +
                                  lost("late_library", "null"))})
          .facts.losses;
  CHECK(losses.size() == 2);
  CHECK(losses["ring_full_entry"].count == 12);
  CHECK_FALSE(losses["ring_full_entry"].uncounted);
  CHECK(losses["late_library"].uncounted);
}

TEST_CASE("What is no trace is refused, with what it seems to be") {
  TemporaryFolder folder;
  auto refused = [&](const std::string& text) { return refusal(folder.write("file", text)); };
  CHECK_THAT(refused(""), ContainsSubstring("is empty"));
  CHECK_THAT(refused("hello\n"), ContainsSubstring("text"));
  CHECK_THAT(refused("\x1f\x8b\x08"), ContainsSubstring("gzip"));
  CHECK_THAT(refused("\x7f"
                     "ELF\x02"),
             ContainsSubstring("a program"));
  CHECK_THAT(refused("SQLite format 3"), ContainsSubstring("nsys"));
  CHECK_THAT(refused(std::string("\0\1\2", 3)), ContainsSubstring("binary"));
  CHECK_THAT(refused(R"({"traceEvents":[]})"), ContainsSubstring("Chrome trace"));
  CHECK_THAT(refused("{\"a\":1}\n"), ContainsSubstring("looks like other JSON"));
  CHECK_THAT(refused("{\"type\":\"dog\"}\n"), ContainsSubstring("looks like other JSON"));
  CHECK_THAT(refused(call(1)), ContainsSubstring("header, is missing"));
  CHECK_THAT(refused(Frames::frame_of("hello\n")), ContainsSubstring("is not a cudabpf trace"));
  CHECK_THAT(refused("\x28\xb5\x2f\xfdx"), ContainsSubstring("is not a cudabpf trace"));
  CHECK_THAT(refusal(folder.path()), ContainsSubstring("is a folder"));
  CHECK_THAT(refusal(folder.path() / "none"), ContainsSubstring("No such file"));
  CHECK_THAT(refused(R"({"type":"trace","format":"cudabpf-trace","format_version":"3.0"})"),
             ContainsSubstring("format 3.0; this cudabpf reads 2.x"));
  CHECK(refused(R"({"type":"trace","format":"cudabpf-trace","format_version":"2.99"})") == "none");
}

TEST_CASE("The files of a rotated trace are one") {
  TemporaryFolder folder;
  auto part = [&](int number, const std::string& calls, bool last) {
    std::string text =
        R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0","part":)" +
        std::to_string(number) + "}\n" + calls + R"({"type":"end","part":)" +
        std::to_string(number) + R"(,"last":)" + (last ? "true" : "false") +
        R"(,"duration_ns":30,"whole":{"duration_ns":70}})" + "\n";
    return folder.write("t." + std::to_string(number), text).string();
  };
  std::string one = part(1, call(1), false), two = part(2, call(2), false),
              three = part(3, call(3), true);
  SECTION("all") {
    Read all = read({one, two, three});
    CHECK(all.ids == Ids{1, 2, 3});
    CHECK(all.facts.missing.empty());
    CHECK(all.facts.duration() == 70);
  }
  SECTION("not the first") {
    CHECK(read({three}).facts.missing == std::vector<std::string>{"parts 1 to 2"});
  }
  SECTION("not the second") {
    CHECK(read({one, three}).facts.missing == std::vector<std::string>{"part 2"});
  }
  SECTION("not the last") {
    CHECK(read({one, two}).facts.missing == std::vector<std::string>{"what comes after part 2"});
    CHECK(read({one, two}, true).facts.missing.size() == 1);
  }
}

namespace {

std::string part(int number, int realtime) {
  return R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0","part":)" +
         std::to_string(number) + R"(,"clocks":{"realtime_ns":)" + std::to_string(realtime) +
         "}}\n" + call(number) + END;
}

std::string refusal_of_all(const std::vector<std::string>& paths) {
  auto reader = TraceReader::open(paths);
  for (;;) {
    auto more = (*reader)->next();
    if (!more) return more.error().message;
    if (!*more) return "none";
  }
}

}  // namespace

TEST_CASE("Files of several traces, or in another order, are refused") {
  TemporaryFolder folder;
  std::string one = folder.write("1", part(1, 5)), two = folder.write("2", part(2, 5));
  std::string other = folder.write("other", part(2, 6));
  CHECK(refusal_of_all({one, two}) == "none");
  CHECK_THAT(refusal_of_all({two, one}), ContainsSubstring("/1 is part 1 of the trace, and "));
  CHECK_THAT(refusal_of_all({one, other}), ContainsSubstring("/other is of another trace than"));
  CHECK_THAT(refusal_of_all({one, one}), ContainsSubstring("/1 is the same part of the trace as"));
}

TEST_CASE("Losses that only the end reports are reported") {
  TemporaryFolder folder;
  std::string lost =
      R"({"type":"lost","ts":5,"reason":"ring_full_entry","severity":"lost","count":3})"
      "\n";
  std::string end = R"({"type":"end","ts":9,"losses":{"ring_full_entry":8,"out_pointer":2}})"
                    "\n";
  auto facts = read({folder.write("t", HEADER + lost + end)}).facts;
  REQUIRE(facts.losses.size() == 2);
  CHECK(facts.losses["ring_full_entry"].count == 8);
  CHECK_FALSE(facts.losses["ring_full_entry"].degraded);
  CHECK(facts.losses["out_pointer"].count == 2);
  CHECK(facts.losses["out_pointer"].degraded);
}

TEST_CASE("Losses for more reasons than there are, are one") {
  TemporaryFolder folder;
  std::string lines, losses;
  constexpr int REASONS = 150;
  for (int i = 0; i < REASONS; i++) {
    std::string reason = "\"reason" + std::to_string(i) + "\"";
    lines +=
        R"({"type":"lost","ts":5,"reason":)" + reason + R"(,"severity":"lost","count":3})" + "\n";
    losses += (i ? "," : "") + reason + ":4";
  }
  auto facts = read({folder.write("t", HEADER + lines + R"({"type":"end","ts":9,"losses":{)" +
                                           losses + "}}\n")})
                   .facts;
  CHECK(facts.losses.size() == 101);
  CHECK(facts.losses["(other reasons)"].count == 50 * 4);
  std::uint64_t all = 0;
  for (const auto& [reason, loss] : facts.losses) all += loss.count;
  CHECK(all == REASONS * 4);
}

TEST_CASE("What nests deeper than any trace is no trace, or no line of one") {
  TemporaryFolder folder;
  constexpr std::size_t DEEP = 1'000'000;
  std::string deep = std::string(DEEP, '[') + std::string(DEEP, ']');
  std::string header = HEADER.substr(0, HEADER.rfind('}')) + ",\"clocks\":" + deep + "}\n";
  auto refused = TraceReader::open({folder.write("h", header + END)});
  REQUIRE(!refused);
  CHECK_THAT(refused.error().message, ContainsSubstring("is not a cudabpf trace"));
  Read cut = read({folder.write(
      "t", HEADER + R"({"type":"process","op":"start","pid":1,"ts":1,"container":)" + deep + "}\n" +
               R"({"id":1,"ts":1,"args":{"a":"[[)" + std::string(200, '[') + "\"}}\n" + END)});
  CHECK(cut.facts.malformed == 1);
  CHECK(cut.ids == Ids{1});
}

TEST_CASE("What an editor puts before the first line is passed over") {
  TemporaryFolder folder;
  for (std::string before : {"\xef\xbb\xbf", "\n\r\n", "\xef\xbb\xbf\n \n"}) {
    Read all = read({folder.write("t.jsonl", before + HEADER + call(1) + "bad\n" + END)});
    CHECK(all.ids == Ids{1});
    CHECK(all.facts.malformed == 1);
    CHECK(all.facts.header == header_in(HEADER));
    auto line = std::count(before.begin(), before.end(), '\n') + 3;
    CHECK(all.facts.first_malformed.front().ends_with(":" + std::to_string(line)));
    CHECK(read({folder.write("t.zst", Frames::frame_of(before + HEADER + call(1) + END))}).ids ==
          Ids{1});
  }
  CHECK_THAT(refusal(folder.write("a", std::string("\xff\xfe{\0", 4))),
             ContainsSubstring("UTF-16"));
  CHECK_THAT(refusal(folder.write("b", "\n\n")), ContainsSubstring("blank lines"));
}

TEST_CASE("How many calls and operations there are") {
  TemporaryFolder folder;
  std::string ioctl = R"({"type":"kernel","op":"ioctl","name":"X","ts":1,"duration_us":1.0})"
                      "\n";
  TraceFacts facts = read({folder.write("t", HEADER + call(1) + ioctl + ioctl + END)}).facts;
  CHECK(facts.calls == 1);
  CHECK(facts.operations == 2);
}

TEST_CASE(
    "A file whose first line is a header for one reader of JSON and not for another is refused") {
  TemporaryFolder folder;
  const std::string format = R"("format":"cudabpf-trace","format_version":"2.0")";
  for (const std::string& first :
       {R"({"type":"end",)" + format + "}", "{" + format + "}", R"({"type":null,)" + format + "}",
        R"({"type":"trace","type":"end",)" + format + "}",
        R"({"type":"trace","id":1,)" + format + "}", R"({"type":"trace","ts":"x",)" + format + "}"})
    CHECK_THAT(refusal(folder.write("t", first + "\n" + call(1) + END)),
               ContainsSubstring("is not a cudabpf trace"));
  CHECK(refusal(folder.write("t", R"({"type":"trace",)" + format + "}")) == "none");
}

TEST_CASE("A trace of which only the last part was kept begins there, and lacks nothing") {
  TemporaryFolder folder;
  std::string header = HEADER;
  header.insert(header.size() - 2, R"(,"since":15)");
  auto path = folder.write("t", header + call(1) + call(2) +
                                    R"({"type":"end","ts":915,"duration_ns":900,"calls":2})"
                                    "\n");
  Read kept = read({path});
  CHECK(kept.ids == Ids{1, 2});  // one began before, and ended later
  CHECK(kept.facts.missing.empty());
  CHECK(kept.facts.cut_off.empty());
  CHECK(kept.facts.calls_in_part == 2);
  CHECK(kept.facts.duration() == 915);
  CHECK(kept.facts.part.is_whole());
  CHECK(kept.facts.part.clipped(0) == 15);
  auto reader = TraceReader::open({path});
  REQUIRE(reader);
  (*reader)->want({100, 200}, "part");
  CHECK((*reader)->facts().part.clipped(0) == 100);
  (*reader)->want({0, 10}, "part");
  CHECK((*reader)->facts().part.clipped(5) == 15);
}

TEST_CASE("Reading ends when the rest is not wanted, also within a line without an end") {
  TemporaryFolder folder;
  std::string endless(std::size_t{64} << 20, 'x');
  for (const std::string& rest : {std::string(1 << 22, '\n') + END, endless}) {
    auto path = folder.write("t.jsonl", HEADER + call(1) + rest);
    check_given_up(path, [&](std::uint64_t, std::uint64_t size) {
      CHECK(size == std::filesystem::file_size(path));
    });
  }
}

TEST_CASE("Reading ends when the rest is not wanted, also where a compressed file has no text") {
  TemporaryFolder folder;
  auto path = folder.write("t.jsonl.zst", Frames::frame_of(HEADER + call(1)));
  constexpr std::uint32_t SKIPPABLE = 0x184d2a50, SIZE = 256 << 20;
  {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    for (std::uint32_t word : {SKIPPABLE, SIZE})
      file.write(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + SIZE);  // a hole
  check_given_up(path, [&](std::uint64_t read, std::uint64_t) { CHECK(read < SIZE / 2); });
}

TEST_CASE("A reader of a trace may open its files in another way") {
  TemporaryFolder folder;
  auto path = folder.write("t.jsonl", HEADER + call(1) + END);
  auto open = [&](const std::string& name) -> Result<Fd> {
    if (name != "t") return Error{name + " is not here", {}};
    return open_trace_file(path);
  };
  auto reader = TraceReader::open({"t"}, {}, open);
  REQUIRE(reader);
  CHECK((*reader)->facts().paths == std::vector<std::string>{"t"});
  auto refused = TraceReader::open({path}, {}, open);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message, ContainsSubstring("is not here"));
}
