#include "analyze/diff/conditions.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/trace_text.hpp"
#include "util/exit_codes.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;
using Is = Outcome::Is;

namespace {

Condition condition(const std::string& text) {
  auto parsed = parse_condition(text);
  if (!parsed) FAIL(parsed.error().message);
  return *parsed;
}

// The message about a wrong condition.
std::string said(const std::string& text) {
  auto parsed = parse_condition(text);
  if (parsed) return "";
  CHECK(parsed.error().exit_code == exit_code::USAGE);
  return parsed.error().message + "; " + parsed.error().hint;
}

// A trace with these figures, by the measure's name.
TraceFigures trace(std::vector<std::pair<std::string, std::uint64_t>> figures) {
  TraceFigures trace;
  trace.facts.calls = 1;
  trace.settings = settings_in({});
  for (auto& [name, value] : figures) {
    std::size_t colon = std::min(name.find(':'), name.size());
    std::string part = colon < name.size() ? name.substr(colon + 1) : "";
    trace.figures.push_back({{find_measure(name.substr(0, colon)), part}, value, {}});
  }
  return trace;
}

DiffSide side(const std::string& measure, std::initializer_list<std::uint64_t> values) {
  DiffSide side;
  for (std::uint64_t value : values) side.traces.push_back(trace({{measure, value}}));
  return side;
}

Is judged(const std::string& text, const DiffSide& a, const DiffSide& b) {
  return judge(condition(text), a, b).is;
}
std::string why(const std::string& text, const DiffSide& a, const DiffSide& b) {
  Condition parsed = condition(text);
  Outcome outcome = judge(parsed, a, b);
  CHECK(outcome.is == Is::unknown);
  return outcome.why;
}

}  // namespace

TEST_CASE("A condition is a measure, a sign, a change and its unit") {
  auto launches = condition("launches > +5 %");
  CHECK(launches.asked == MeasurePart{find_measure("launches"), ""});
  CHECK(launches.more);
  CHECK(launches.relative);
  CHECK(launches.limit == 5);
  auto time = condition("iteration-time<-1.5ms");
  CHECK(time.text == "iteration-time < -1.5 ms");
  CHECK_FALSE(time.more);
  CHECK_FALSE(time.relative);
  CHECK(time.limit == -1.5e6);
  auto part = condition("  transfers:GPU 0 to GPU 1  >  10 ");
  CHECK(part.asked.part == "GPU 0 to GPU 1");
  CHECK(part.text == "transfers:GPU 0 to GPU 1 > +10");
  CHECK(part.limit == 10);
  CHECK(condition("memory-peak > 1.5GiB").limit == 1.5 * 1024 * 1024 * 1024);
  CHECK(condition("memory-peak:device > 1 MiB").limit == 1024 * 1024);
  CHECK(condition("duration > 2 s").limit == 2e9);
  CHECK(condition("waiting > 7 us").limit == 7000);
  CHECK(condition("waiting > 7 µs").limit == 7000);
  CHECK(condition("idle > +3 points").limit == 30'000);
  CHECK(condition("idle > .5 %").limit == 0.5);
}

TEST_CASE("A text that is no condition is refused, and the message lists what there is") {
  for (const Measure& measure : all_measures())
    CHECK_THAT(said("nonsense > 5"), ContainsSubstring(std::string(measure.name)));
  CHECK_THAT(said("nonsense > 5"), ContainsSubstring("no measure is called nonsense"));
  CHECK_THAT(said("lanches > 5"), ContainsSubstring("did you mean launches?"));
  CHECK_THAT(said("lanches"), ContainsSubstring("did you mean launches?"));
  CHECK_THAT(said(""), ContainsSubstring("does not begin with a measure"));
  CHECK_THAT(said("> 5"), ContainsSubstring("does not begin with a measure"));
  CHECK_THAT(said("launches"), ContainsSubstring("neither > nor <"));
  CHECK_THAT(said("launches = 5"), ContainsSubstring("neither > nor <"));
  for (const char* number : {"", "x", "=5", "+", "--5", "+-5", "1e3", "inf", "nan", "0x10", "1.2.3",
                             ".", ">5", "5,5", "+ 5", "%"}) {
    CAPTURE(number);
    CHECK_FALSE(said(std::string("launches >") + number).empty());
  }
  CHECK_THAT(said("launches > 5 ms"), ContainsSubstring("not measured in ms") &&
                                          ContainsSubstring("after the number: %, nothing"));
  CHECK_THAT(said("duration > 5"), ContainsSubstring("needs a unit") && ContainsSubstring("us"));
  CHECK_THAT(said("duration > 5 MiB"), ContainsSubstring("not measured in MiB"));
  CHECK_THAT(said("memory-peak > 5 MB"), ContainsSubstring("KiB, MiB, GiB"));
  CHECK_THAT(said("idle > 5"), ContainsSubstring("points"));
  CHECK_THAT(said("launches > 5 % more"), ContainsSubstring("not measured in % more"));
  CHECK_THAT(said("launches:gemm > 5"), ContainsSubstring("launches has no parts"));
  CHECK_THAT(said("calls: > 5"), ContainsSubstring("a function must follow"));
  CHECK_THAT(said("call-time > 5 us"), ContainsSubstring("call-time:function"));
}

TEST_CASE("Each measure has a name of its own, that a condition takes") {
  std::vector<std::string> names = measure_names();
  for (const std::string& name : names) {
    CHECK(std::count(names.begin(), names.end(), name) == 1);
    CHECK(name.find_first_of(" :<>") == std::string::npos);
    CHECK(said(name + (find_measure(name)->whole ? "" : ":x") + " > 5 %").empty());
  }
  CHECK(names.size() >= 25);
  CHECK_FALSE(find_measure("launch"));
}

TEST_CASE("A change of one trace a side is compared with the limit") {
  auto a = side("launches", {1000}), b = side("launches", {1051});
  CHECK(judged("launches > +5 %", a, b) == Is::holds);
  CHECK(judged("launches > +5.1 %", a, b) == Is::does_not_hold);
  CHECK(judged("launches > 50", a, b) == Is::holds);
  CHECK(judged("launches > 51", a, b) == Is::does_not_hold);
  CHECK(judged("launches < -4 %", b, a) == Is::holds);
  CHECK(judged("launches < -5 %", b, a) == Is::does_not_hold);
  CHECK(judged("launches > -4 %", b, a) == Is::does_not_hold);
  CHECK(judged("launches > +0", a, a) == Is::does_not_hold);
  CHECK(judged("launches > -1 %", a, a) == Is::holds);  // not one percent less
  SECTION("any rise from nothing is more than every percentage") {
    auto none = side("launches", {0});
    CHECK(judged("launches > +900 %", none, a) == Is::holds);
    CHECK(judged("launches < +900 %", none, a) == Is::does_not_hold);
    CHECK(judged("launches > +0 %", none, none) == Is::does_not_hold);
    CHECK(judged("launches > -1 %", none, none) == Is::holds);
    CHECK(judged("launches < -99 %", a, none) == Is::holds);
    CHECK(judged("launches < -100 %", a, none) == Is::does_not_hold);
  }
}

TEST_CASE("A change within the noise counts as none") {
  auto a = side("duration", {100'000, 104'000, 110'000});
  auto apart = side("duration", {111'000, 116'000, 120'000});
  auto among = side("duration", {109'000, 116'000, 120'000});
  CHECK(judged("duration > +5 %", a, apart) == Is::holds);
  CHECK(judged("duration > +5 %", a, among) == Is::does_not_hold);
  CHECK(judged("duration > +5 us", a, apart) == Is::holds);
  CHECK(judged("duration > +5 us", a, among) == Is::does_not_hold);
  CHECK(judged("duration > +12 %", a, apart) == Is::does_not_hold);
  SECTION("so an improvement that is required must be beyond it") {
    CHECK(judged("duration > -5 %", apart, a) == Is::does_not_hold);
    CHECK(judged("duration > -5 %", among, a) == Is::holds);
  }
  SECTION("also within two traces") {
    TraceFigures one = trace({{"iteration-time", 1000}}), other = trace({{"iteration-time", 1060}});
    one.figures[0].median = {100, 1000, 10};
    other.figures[0].median = {100, 1060, 10};
    CHECK(judged("iteration-time > +4 %", {{one}}, {{other}}) == Is::holds);
    one.figures[0].median.standard_error = 30;
    CHECK(judged("iteration-time > +4 %", {{one}}, {{other}}) == Is::does_not_hold);
    one.figures[0].median.count = 5;  // too few to judge by: the figures count
    CHECK(judged("iteration-time > +4 %", {{one}}, {{other}}) == Is::holds);
  }
}

TEST_CASE("An error is no noise") {
  CHECK(judged("errors > +0", side("errors", {0, 0, 0}), side("errors", {0, 0, 1})) == Is::holds);
  CHECK(judged("errors > +0", side("errors", {0, 2, 0}), side("errors", {0, 0, 1})) ==
        Is::does_not_hold);
  auto outcome = judge(condition("errors > +0"), side("errors", {0, 0, 0}), side("errors", {0, 3}));
  CHECK(outcome.compared.b.figure == 3);
}

TEST_CASE("What cannot be judged is reported, and fails") {
  auto a = side("launches", {100}), b = side("launches", {100});
  DiffSide without = {{trace({})}};
  CHECK(why("iteration-time > +5 %", side("iteration-time", {5}), without) ==
        "B has no timed iterations");
  auto one_without = side("iteration-time", {5, 6, 7});
  one_without.traces[1].figures.clear();
  CHECK(why("iteration-time > +5 %", one_without, side("iteration-time", {5})) ==
        "A2 has no timed iterations");
  SECTION("a trace that lacks what the measure needs") {
    b.traces[0].doubts.push_back({Need::launches | Need::copies, "is full of holes"});
    CHECK(why("launches > +5 %", a, b) == "B is full of holes");
    auto memory = side("memory-peak", {5});
    memory.traces[0].doubts = b.traces[0].doubts;
    CHECK(judged("memory-peak > +5 %", memory, memory) == Is::does_not_hold);
  }
  SECTION("a part that no trace has, but not one that only one has") {
    auto with = side("transfers:HtoD", {7});
    CHECK(why("transfers:HtoX > 1", with, without) == "A has no direction HtoX");
    CHECK(judged("transfers:HtoD > 1", with, without) == Is::does_not_hold);
    CHECK(judged("transfers:HtoD > 1", without, with) == Is::holds);
    CHECK(why("call-time:cuInit > 1 us", side("call-time:cuInit", {7}), without) ==
          "B has no function cuInit");
  }
  SECTION("iterations that are timed in different ways") {
    auto waiting = side("iteration-time", {5}), issuing = waiting;
    issuing.traces[0].issued_alone = true;
    CHECK_THAT(why("iteration-time > +5 %", waiting, issuing),
               ContainsSubstring("not of one kind"));
    CHECK(judged("iteration-time > +5 %", issuing, issuing) == Is::does_not_hold);
    CHECK(judged("launches > +5 %", a, b) == Is::does_not_hold);
  }
  SECTION("traces that were not taken alike") {
    auto calls = side("calls", {5}), other = calls;
    other.traces[0].settings = settings_in(*header_in(R"({"profile":"light"})"));
    CHECK_THAT(why("calls > +5 %", calls, other), ContainsSubstring("(profile)"));
    other.traces[0].settings = settings_in(*header_in(R"({"host":"another"})"));
    CHECK(judged("calls > +5 %", calls, other) == Is::does_not_hold);
  }
}

TEST_CASE("The status is that of what holds, or else of what cannot be judged") {
  std::vector<Condition> conditions = {condition("launches > +5 %"), condition("errors > +0"),
                                       condition("launches < -5 %")};
  DiffSide a{{trace({{"launches", 100}, {"errors", 0}})}};
  auto status = [&](std::uint64_t launches, bool errors) {
    TraceFigures b = trace({{"launches", launches}});
    if (errors) b.figures.push_back({{find_measure("errors"), ""}, 0, {}});
    return status_of(judge(conditions, a, {{b}}));
  };
  CHECK(status(100, true) == 0);
  CHECK(status(106, true) == exit_code::CONDITION_HOLDS);
  CHECK(status(94, true) == exit_code::CONDITION_HOLDS);
  CHECK(status(100, false) == exit_code::CONDITION_UNKNOWN);
  CHECK(status(106, false) == exit_code::CONDITION_HOLDS);
  CHECK(status_of({}) == 0);
}

TEST_CASE("Page and JSON of conditions") {
  std::vector<Condition> conditions = {condition("duration > +5 %"), condition("duration > +1 ms"),
                                       condition("iteration-time > +5 %")};
  auto outcomes = judge(conditions, side("duration", {100'000'000, 102'000'000, 104'000'000}),
                        side("duration", {108'000'000, 110'000'000, 111'000'000}));
  for (unsigned width : {80, 120, 160}) {
    std::string text = page_text([&](Page& page) { add_outcomes(page, outcomes); }, width);
    CHECK_THAT(text, ContainsSubstring("duration > +5 %") && ContainsSubstring("+7.8 %") &&
                         ContainsSubstring("102 ms ±2.0 %") && ContainsSubstring("110 ms ±1.8 %") &&
                         ContainsSubstring("+8.00 ms") && ContainsSubstring("beyond  yes") &&
                         ContainsSubstring("Exit status 118: duration > +5 %; duration > +1 ms.") &&
                         ContainsSubstring("A1 has no timed iterations."));
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      CHECK(width_of(text.substr(at, text.find('\n', at) - at)) <= width);
  }
  Json json = outcomes_json(outcomes);
  CHECK(json[0]["outcome"] == "holds");
  CHECK(json[0]["a"] == 102'000.0);
  CHECK(json[0]["a_spread"]["of_each"] == Json({100'000.0, 102'000.0, 104'000.0}));
  CHECK(json[0]["b_spread"]["max"] == 111'000.0);
  CHECK(json[0]["noise"] == "beyond");
  CHECK(json[1]["change"] == 8000.0);
  CHECK(json[2]["outcome"] == "unknown");
  CHECK(json[2]["a"].is_null());
  CHECK(json[2]["why"] == "A1 has no timed iterations");
}
