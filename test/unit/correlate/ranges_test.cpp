#include <catch2/catch_test_macros.hpp>

#include "correlate/correlating.hpp"
#include "trace/write/range_lines.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint32_t OTHER_THREAD = 101;

struct Named : Correlating {
  using Correlating::Correlating;

  void say(abi::cb_range_op op, std::string_view text, std::uint16_t domain, std::uint16_t level,
           std::uint64_t number = 0) {
    samples::Head head{.ts = time += 1000, .tid = tid, .drops = drops};
    auto bytes = samples::with_head(head, abi::CB_RANGE, sizeof(abi::cb_range));
    bytes.append(text.data(), text.size());
    auto& record = bytes.as<abi::cb_range>();
    record.head.function = op;
    record.head.string_size = static_cast<std::uint16_t>(text.size());
    record.domain = domain;
    record.level = level;
    record.number = number;
    record.category = category;
    feed(bytes);
  }
  void push(std::string_view name, std::uint16_t level, std::uint16_t domain = 0) {
    say(abi::CB_RANGE_PUSH, name, domain, level);
  }
  void pop(std::uint16_t level, std::uint16_t domain = 0) {
    say(abi::CB_RANGE_POP, {}, domain, level);
  }
  // In which range a call is that is made now: "outer/inner".
  std::string here() {
    call({.ts = time += 1000, .tid = tid, .drops = drops}, "cuInit", {0});
    return sink.calls.back().own_range;
  }
  // "name took" of each range that has ended, in the order of their lines.
  std::string ended() {
    std::string all;
    for (const NamedRange& range : sink.ranges) {
      all += range.name;
      if (range.has_end) all += " " + std::to_string(range.duration);
      if (range.end_lost) all += " lost";
      if (range.unfinished) all += " unfinished";
      all += ";";
    }
    sink.ranges.clear();
    return all;
  }

  std::uint64_t time = 1000;
  std::uint32_t tid = 100, drops = 0, category = 0;
};

}  // namespace

TEST_CASE("A call is in the innermost range of its thread") {
  Named program;
  CHECK(program.here().empty());
  program.push("outer", 0);
  CHECK(program.here() == "outer");
  program.push("inner", 1);
  CHECK(program.here() == "outer/inner");
  program.tid = OTHER_THREAD;
  CHECK(program.here().empty());
  program.tid = 100;
  program.pop(1);
  CHECK(program.here() == "outer");
  program.pop(0);
  CHECK(program.here().empty());
  CHECK(program.ended() == "inner 3000;outer 7000;");
}

TEST_CASE("The same names have one number, whichever thread is there") {
  Named program;
  for (std::uint32_t tid : {100U, OTHER_THREAD, 100U}) {
    program.tid = tid;
    program.push("step", 0);
    program.push("layer", 1);
    program.pop(1);
    program.pop(0);
  }
  program.push("layer", 0);  // in no other
  program.pop(0);
  REQUIRE(program.sink.ranges.size() == 7);
  CHECK(program.sink.ranges[0].path->number == program.sink.ranges[4].path->number);
  CHECK(program.sink.ranges[1].path->number == program.sink.ranges[3].path->number);
  CHECK(program.sink.ranges[6].path->number != program.sink.ranges[0].path->number);
}

TEST_CASE("What passes a USDT probe is in its thread's range, and ends at once") {
  Named program({.entry_only = [](const Function& f) { return api(f.api).has_probes(); }});
  program.push("outer", 0);
  samples::Head head{.ts = program.time += 1000, .tid = program.tid};
  program.feed(samples::entry(head, "pytorch:malloc", {0x7000, 1, 512, 9}));
  REQUIRE(program.sink.calls.size() == 1);
  const auto& block = program.sink.calls.back();
  CHECK(block.own_range == "outer");
  CHECK(block.details.ptr == 0x7000);
  CHECK(block.details.size == 512);
  CHECK(block.details.device == 1);
  CHECK_FALSE(block.details.stream);
  CHECK_FALSE(block.has_return);
  program.here();
  CHECK_FALSE(program.sink.calls.back().within);
}

TEST_CASE("Domains nest in one another, and each ends its own range") {
  Named program;
  program.say(abi::CB_RANGE_DOMAIN, "NCCL", 3, CB_NO_LEVEL);
  program.push("step", 0);
  program.push("ncclAllReduce", 0, 3);
  CHECK(program.here() == "step/ncclAllReduce");
  program.pop(0);  // the outer one first, as programs may
  CHECK(program.here() == "step/ncclAllReduce");
  program.pop(0, 3);
  CHECK(program.here().empty());
  REQUIRE(program.sink.ranges.size() == 2);
  CHECK(program.sink.ranges[0].domain.empty());
  CHECK(program.sink.ranges[1].domain == "NCCL");
}

TEST_CASE("A domain whose name is not known is not taken for the default one") {
  Named program;
  program.push("a", 0, 9);
  program.pop(0, 9);
  CHECK(program.sink.ranges.at(0).domain == "(unknown)");
}

TEST_CASE("What a lost record would have said follows from the next one") {
  Named program;
  program.push("outer", 0);
  program.push("inner", 1);
  program.drops = 1;  // its end is lost
  SECTION("from a range that begins") {
    program.push("next", 1);
    CHECK(program.here() == "outer/next");
    program.pop(1);
    program.pop(0);
    CHECK(program.ended() == "inner lost;next 2000;outer 5000;");
  }
  SECTION("from one that ends") {
    program.pop(0);
    CHECK(program.here().empty());
    CHECK(program.ended() == "inner lost;outer 2000;");
  }
  SECTION("the beginning of a range was lost") {
    program.pop(2);
    CHECK(program.here() == "outer/inner");
    CHECK(program.ended().empty());
  }
}

TEST_CASE("Without its depth, a range that ends after a loss is not timed") {
  Named program;
  program.push("a", CB_NO_LEVEL, 200);
  program.pop(CB_NO_LEVEL, 200);
  program.push("b", CB_NO_LEVEL, 200);
  program.drops = 1;
  program.pop(CB_NO_LEVEL, 200);
  CHECK(program.ended() == "a 1000;b lost;");
}

TEST_CASE("A range that was started may end on another thread, and is around all of its process") {
  Named program;
  program.say(abi::CB_RANGE_START, "request", 0, CB_NO_LEVEL, 7);
  program.tid = OTHER_THREAD;
  CHECK(program.here() == "request");
  program.push("read", 0);
  CHECK(program.here() == "request/read");
  program.say(abi::CB_RANGE_START, "later", 0, CB_NO_LEVEL, 8);
  CHECK(program.here() == "request/read/later");
  program.say(abi::CB_RANGE_END, {}, 0, CB_NO_LEVEL, 7);
  program.say(abi::CB_RANGE_END, {}, 0, CB_NO_LEVEL, 99);  // none of that number
  program.say(abi::CB_RANGE_END, {}, 0, CB_NO_LEVEL, 8);
  CHECK(program.here() == "request/read");
  program.pop(0);
  CHECK(program.ended() == "request 6000;later 4000;read 8000;");
}

TEST_CASE("A mark is a moment in the range around it") {
  Named program;
  program.push("step", 0);
  program.say(abi::CB_RANGE_MARK, "here", 0, CB_NO_LEVEL);
  const NamedRange& mark = program.sink.ranges.at(0);
  CHECK(mark.op == NamedRange::Op::mark);
  CHECK(mark.path->name == "step");
  CHECK(range_line(mark) ==
        R"({"type":"range","op":"mark","label":"here","ts":3000,"pid":100,"tid":100,"range":1})"
        "\n");
}

TEST_CASE("Ranges that are open when their thread, process or the trace ends are unfinished") {
  Named program;
  program.push("of a thread", 0);
  program.feed(samples::with_head({.ts = 9000}, abi::CB_THREAD_EXIT, sizeof(abi::cb_head)));
  CHECK(program.ended() == "of a thread unfinished;");
  program.tid = OTHER_THREAD;
  program.push("a", 0);
  program.push("b", 1);
  program.say(abi::CB_RANGE_START, "c", 0, CB_NO_LEVEL, 1);
  program.correlator.finish();
  CHECK(program.ended() == "b unfinished;a unfinished;c unfinished;");
}

TEST_CASE("Categories have their names") {
  Named program;
  program.category = 5;
  program.say(abi::CB_RANGE_MARK, "before", 0, CB_NO_LEVEL);
  program.say(abi::CB_RANGE_CATEGORY, "I/O", 0, CB_NO_LEVEL);
  program.say(abi::CB_RANGE_MARK, "after", 0, CB_NO_LEVEL);
  program.say(abi::CB_RANGE_MARK, "elsewhere", 1, CB_NO_LEVEL);
  CHECK(program.sink.ranges.at(0).category == "5");
  CHECK(program.sink.ranges.at(1).category == "I/O");
  CHECK(program.sink.ranges.at(2).category == "5");
}

TEST_CASE("Names without end make room for one another, and those in use stay") {
  Correlator::Options options;
  options.limits.of(Kept::ranges) = 4;
  Named program(std::move(options));
  program.push("run", 0);
  for (int step = 0; step < 20; step++) {
    program.push("step " + std::to_string(step), 1);
    CHECK(program.here() == "run/step " + std::to_string(step));
    program.pop(1);
    program.sink.ranges.clear();  // which has them in use
  }
  CHECK(program.correlator.bounds().all_left_out(Kept::ranges) == 0);
  for (std::uint16_t depth = 1; depth < 8; depth++) program.push("deep", depth);
  CHECK(program.here() == "run/deep/deep/deep");
  CHECK(program.correlator.bounds().all_left_out(Kept::ranges) == 4);
}
