#include "merge/moved_lines.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <memory>

#include "trace/read/line_parser.hpp"

using namespace cudabpf;
using namespace cudabpf::merge;

namespace {

// A line as it is in a merge: of the second host, 1000 ns later, the third of four traces.
class Moved {
 public:
  std::string operator()(const std::string& text, const std::string& host = "b\"1") {
    padded_ = text + std::string(analyze::LineParser::PADDING, '\n');
    analyze::Line line;
    REQUIRE(parser_.parse({padded_.data(), text.size()}, line));
    std::uint64_t given = 1;
    MovedLines moved({host, {1}, 1000, 2, 4}, given);
    if (!moved.admits(line)) return "refused";
    std::string out;
    moved.append(line, out);
    return out;
  }

 private:
  analyze::LineParser parser_;
  std::string padded_;
};

}  // namespace

TEST_CASE("A line's times and numbers become those of the merge, and all else stays") {
  Moved moved;
  CHECK(moved(R"({"id":7,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":5,)"
              R"("duration_us":3.871,"pid":42,"tid":43,"ret":0,"parent":6,"device":1,"graph":3,)"
              R"("ptr":"0x7f2a40000000","args":{"pid":42,"id":[1, 2]}})") ==
        R"({"id":4103,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1005,)"
        R"("duration_us":3.871,"pid":10000042,"tid":10000043,"ret":0,"parent":4102,"device":1001,)"
        R"("graph":14,"ptr":"0x7f2a40000000","args":{"pid":42,"id":[1, 2]},"host":"b\"1"})"
        "\n");
  CHECK(moved(R"({"type":"process","op":"start","ts":0,"pid":1,"ppid":0,"ns_pid":5})", "") ==
        R"({"type":"process","op":"start","ts":1000,"pid":10000001,"ppid":0,"ns_pid":5})"
        "\n");
  CHECK(moved(R"({"type":"lost","ts":9,"reason":"x","count":null,"since":3,"until":9})", "") ==
        R"({"type":"lost","ts":1009,"reason":"x","count":null,"since":1003,"until":1009})"
        "\n");
  CHECK(moved(R"({"type":"gpu","op":"sample","ts":9,"gpu":0,"power_w":1.50,)"
              R"("processes":[{"pid":42,"memory":5},{"pid": 7}],)"
              R"("residents":[{"ms":0.000},{"pid":8,"ms":1.0}],"resident_from":1,"resident_to":8})",
              "") == R"({"type":"gpu","op":"sample","ts":1009,"gpu":1000,"power_w":1.50,)"
                     R"("processes":[{"pid":10000042,"memory":5},{"pid": 10000007}],)"
                     R"("residents":[{"ms":0.000},{"pid":10000008,"ms":1.0}],)"
                     R"("resident_from":1001,"resident_to":1008})"
                     "\n");
}

TEST_CASE("A line says of which host it is, whatever it said before") {
  Moved moved;
  CHECK(moved(R"({"type":"x","host":"other","ts":1})") == R"({"type":"x","ts":1001,"host":"b\"1"})"
                                                          "\n");
  CHECK(moved(R"({"type":"x","a\"b\\":{"c":"}"} , "d" : [ ] })") ==
        R"({"type":"x","a\"b\\":{"c":"}"},"d":[ ],"host":"b\"1"})"
        "\n");
  CHECK(moved("{}") == "{\"host\":\"b\\\"1\"}\n");
  CHECK(moved("{}", "") == "{}\n");
}

TEST_CASE("Devices that no machine has, and what is no number, stay as they are") {
  Moved moved;
  CHECK(moved(R"({"type":"x","device":-1,"src_device":1000,"dst_device":999})", "") ==
        R"({"type":"x","device":-1,"src_device":1000,"dst_device":1999})"
        "\n");
  CHECK(moved(R"({"type":"x","pid":null,"since":"soon","until":-4,"call":null})", "") ==
        R"({"type":"x","pid":null,"since":"soon","until":-4,"call":null})"
        "\n");
}

TEST_CASE("Lines with numbers that no real trace has are refused") {
  Moved moved;
  CHECK(moved(R"({"type":"x","ts":4611686018427387905})") == "refused");
  CHECK(moved(R"({"type":"x","pid":10000000})") == "refused");
  CHECK(moved(R"({"type":"x","ppid":4294967295})") == "refused");
  CHECK(moved(R"({"type":"x","tid":4294967295})") == "refused");
  CHECK(moved(R"({"type":"x","graph":18446744073709551615})") == "refused");
  CHECK(moved(R"({"type":"x","tid":1073741824})", "") == R"({"type":"x","tid":1083741824})"
                                                         "\n");
}

TEST_CASE("Communicators, groups and the calls that they name have the numbers of the merge") {
  Moved moved;
  CHECK(moved(R"({"id":7,"type":"collective","op":"all_reduce","ts":5,"communicator":3,"seq":9,)"
              R"("call_group":2,"count":4})",
              "") == R"({"id":4103,"type":"collective","op":"all_reduce","ts":1005,)"
                     R"("communicator":14,"seq":9,"call_group":10,"count":4})"
                     "\n");
  CHECK(moved(R"({"type":"collective","op":"comm","ts":5,"pid":42,"communicator":3,)"
              R"("identity":"0xa","device":1,"made_by":7,"from":1,"ordinal":2})",
              "") == R"({"type":"collective","op":"comm","ts":1005,"pid":10000042,)"
                     R"("communicator":14,"identity":"0xa","device":1001,"made_by":4103,"from":6,)"
                     R"("ordinal":2})"
                     "\n");
  CHECK(moved(R"({"type":"graph","op":"content","ts":5,"graph":3,"collectives":[7, 8],)"
              R"("content":[{"op":"kernel","count":7}]})",
              "") == R"({"type":"graph","op":"content","ts":1005,"graph":14,)"
                     R"("collectives":[4103, 4104],"content":[{"op":"kernel","count":7}]})"
                     "\n");
  CHECK(moved(R"({"type":"graph","op":"content","ts":5,"graph":3,"collectives":[7,-8]})") ==
        "refused");
  CHECK(moved(R"({"id":7,"type":"collective","ts":5,"communicator":18446744073709551615})") ==
        "refused");
}
