#include "trace/read/line_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

using namespace cudabpf::analyze;

namespace {

// A parser, and the line that it read last.
struct Parsing {
  LineParser parser;
  Line line;
  std::string padded;

  bool parse(const std::string& text) {
    padded = text + "\n" + std::string(LineParser::PADDING - 1, 'x');
    return parser.parse({padded.data(), text.size()}, line);
  }
  std::string_view text(Name name) const { return parser.names().text(name); }
};

const std::string LAUNCH =
    R"t({"id":9,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":41000122,)t"
    R"t("duration_us":3.871,"pid":4242,"tid":4243,"ret":0,"stream":"0x7f2a40000000",)t"
    R"t("async":true,"kernel":"add(\"x\")","kernel_from":"handle","grid":[4096,2,1],)t"
    R"t("block":[256,1,1],"shared":48,"handle":"0x55d0c8a1e2f0","ioctls":2,)t"
    R"t("ioctl_us":1.250,"args":{"a":[1,{"b":"}"}]},"parent":7})t";

}  // namespace

TEST_CASE("Fields of a collective, whose words may be numbers, and of its communicator") {
  Parsing p;
  REQUIRE(p.parse(
      R"({"id":9,"type":"collective","op":"all_reduce","library":"nccl","ts":1,"ret":7,)"
      R"("communicator":3,"seq":41,"call_group":5,"count":6,"datatype":"bfloat16","reduction":77,)"
      R"("root":-1,"peer":2})"));
  CHECK(p.line.kind == LineKind::call);
  CHECK_FALSE(p.line.failed());
  CHECK(p.line.communicator == 3);
  CHECK(p.line.seq == 41);
  CHECK(p.line.call_group == 5);
  CHECK(p.line.count == 6);
  CHECK(p.text(p.line.datatype) == "bfloat16");
  CHECK(p.text(p.line.reduction) == "77");
  CHECK(p.line.root == -1);
  CHECK(p.line.peer == 2);
  REQUIRE(p.parse(R"({"type":"collective","op":"comm","ts":1,"pid":2,"communicator":3})"));
  CHECK(p.line.kind == LineKind::communicator);
  CHECK_FALSE(p.parse(R"({"id":9,"type":"collective","ts":1,"communicator":"3"})"));
  CHECK_FALSE(p.parse(R"({"id":9,"type":"collective","ts":1,"reduction":[]})"));
}

TEST_CASE("Fields of a graph's launch, and of a captured call") {
  Parsing p;
  REQUIRE(p.parse(
      R"({"id":9,"type":"graph","op":"launch","graph":3,"nodes":27,"kernels":24,"captured":true})"));
  CHECK(p.line.graph == 3);
  CHECK(p.line.nodes == 27);
  CHECK(p.line.kernels == 24);
  CHECK(p.line.captured);
  REQUIRE(p.parse(R"({"id":9,"type":"graph","op":"launch","graph_unknown":"before"})"));
  CHECK_FALSE(p.line.has(Field::graph));
  CHECK(p.text(p.line.graph_unknown) == "before");
  CHECK_FALSE(p.line.captured);
  CHECK_FALSE(p.parse(R"({"id":9,"graph":"3"})"));
}

TEST_CASE("Fields of a launch") {
  Parsing p;
  REQUIRE(p.parse(LAUNCH));
  CHECK(p.line.kind == LineKind::call);
  CHECK(p.line.id == 9);
  CHECK(p.line.parent == 7);
  CHECK(p.text(p.line.type) == "kernel");
  CHECK(p.text(p.line.op) == "launch");
  CHECK(p.text(p.line.name) == "cuLaunchKernel");
  CHECK(p.line.ts == 41000122);
  CHECK(p.line.duration == 3871);
  CHECK(p.line.end() == 41003993);
  CHECK(p.line.pid == 4242);
  CHECK(p.line.tid == 4243);
  CHECK(p.line.has(Field::ret));
  CHECK(p.line.stream == 0x7f2a40000000);
  CHECK(p.line.async);
  CHECK(p.text(p.line.kernel) == "add(\"x\")");
  CHECK(p.line.grid == std::array<std::uint32_t, 3>{4096, 2, 1});
  CHECK(p.line.block == std::array<std::uint32_t, 3>{256, 1, 1});
  CHECK(p.line.shared == 48);
  CHECK(p.line.handle == 0x55d0c8a1e2f0);
  CHECK(p.line.ioctls == 2);
  CHECK(p.line.ioctl_time == 1250);
  CHECK(p.line.args == R"({"a":[1,{"b":"}"}]})");
  REQUIRE(p.parse(R"({"id":1,"args":{"a":1} , "ts":5})"));
  CHECK(p.line.args == R"({"a":1})");
  CHECK_FALSE(p.line.has(Field::size));
  CHECK_FALSE(p.line.failed());
}

TEST_CASE("Names are distinguished by their text, however it is escaped") {
  Parsing p;
  auto name = [&](const std::string& json) {
    REQUIRE(p.parse(R"({"id":1,"name":)" + json + R"(,"op":"launch"})"));
    CHECK(p.text(p.line.op) == "launch");
    return p.line.name;
  };
  for (int round = 0; round < 2; round++) {  // new ones, and known ones
    CHECK(p.text(name(R"("a\\nb")")) == "a\\nb");
    CHECK(p.text(name(R"("a\nb")")) == "a\nb");
    CHECK(p.text(name(R"("x")")) == "x");
    CHECK(p.text(name(R"("x\"")")) == "x\"");
    CHECK_FALSE(name(R"("")"));
    CHECK_FALSE(name("null"));
    CHECK(name(R"("\u0063uInit")") == name(R"("cuInit")"));
    CHECK(name(R"( "cuInit" )") == name(R"("cuInit")"));
  }
}

TEST_CASE("A line is as bad when its name is known") {
  Parsing p;
  CHECK(p.parse(R"({"name":"cuInit"})"));
  for (int time = 0; time < 2; time++) {
    CHECK_FALSE(p.parse(R"({"name":"cuInit":7})"));
    CHECK_FALSE(p.parse(R"({"name":"cuInit" 7})"));
  }
}

TEST_CASE("Keys of any length, also at a line's end") {
  Parsing p;
  REQUIRE(
      p.parse(R"({"":1,"i":2,"id":3,"kernel_":4,"unfinishe":true,"unfinished_":true,"k\"":7})"));
  CHECK(p.line.id == 3);
  CHECK_FALSE(p.line.unfinished);
  REQUIRE(p.parse(R"({"unfinished":true,"a":1})"));
  CHECK(p.line.unfinished);
}

TEST_CASE("What a field's absence says") {
  Parsing p;
  REQUIRE(p.parse(R"({"id":1,"type":"memory","ts":5,"unfinished":true,"size":null,"args":null})"));
  CHECK(p.line.unfinished);
  CHECK_FALSE(p.line.has(Field::duration));
  CHECK_FALSE(p.line.has(Field::size));
  CHECK_FALSE(p.line.name);
  CHECK(p.line.args.empty());
}

TEST_CASE("A time that ends after the last possible one makes a line a bad one") {
  Parsing p;
  CHECK(p.parse(R"({"ts":9223372036854775000,"duration_us":0.807})"));
  CHECK_FALSE(p.parse(R"({"ts":9223372036854775000,"duration_us":0.808})"));
  CHECK_FALSE(p.parse(R"({"ts":18446744073709549616,"duration_us":1.000})"));
}

TEST_CASE("Numbers stay exact") {
  Parsing p;
  REQUIRE(p.parse(R"({"id":18446744073709551615,"duration_us":9007199254740993.125,"size":7})"));
  CHECK(p.line.id == 18446744073709551615U);
  CHECK(p.line.duration == 9007199254740993125U);
  REQUIRE(p.parse(R"({"id":1,"duration_us":2})"));  // not as cudabpf writes it
  CHECK(p.line.duration == 2000);
  REQUIRE(p.parse(R"({"id":1,"duration_us":0.0015})"));
  CHECK(p.line.duration == 2);
}

TEST_CASE("Which kind of line it is") {
  Parsing p;
  auto kind = [&](const std::string& text) {
    REQUIRE(p.parse(text));
    return p.line.kind;
  };
  CHECK(kind(R"({"type":"trace","format":"cudabpf-trace"})") == LineKind::header);
  CHECK(kind(R"({"type":"end","unfinished_calls":3,"losses":{}})") == LineKind::end);
  CHECK(kind(R"({"type":"process","op":"exit","pid":1})") == LineKind::process);
  CHECK(kind(R"({"type":"library","device":18446744073709551,"error":"gone"})") ==
        LineKind::library);
  CHECK(kind(R"({"type":"lost","reason":"ring_full_entry","count":null})") == LineKind::lost);
  CHECK(kind(R"({"type":"error","op":"xid","xid":79,"bus_id":"0000:3b:00.0"})") ==
        LineKind::gpu_error);
  CHECK(kind(R"({"type":"kernel","op":"ioctl","ret":-22,"device_file":"nvidiactl"})") ==
        LineKind::driver);
  CHECK(p.line.failed());
  CHECK(kind(R"({"type":"kernel","op":"interrupt","name":"isr","cpu":3})") == LineKind::interrupt);
  CHECK(p.line.has(Field::cpu));
  CHECK(p.line.cpu == 3);
  CHECK(kind(R"({"type":"graph","op":"content","graph":1,"content":[]})") == LineKind::graph);
  CHECK(kind(R"({"type":"graph","op":"launch"})") == LineKind::other);
  CHECK(kind(R"({"type":"weather","op":"rain"})") == LineKind::other);
}

TEST_CASE("A query that work goes on has not failed") {
  Parsing p;
  REQUIRE(p.parse(R"({"id":1,"type":"query","ret":600})"));
  CHECK_FALSE(p.line.failed());
  REQUIRE(p.parse(R"({"id":1,"type":"query","ret":2})"));
  CHECK(p.line.failed());
}

TEST_CASE("Lines that are none") {
  Parsing p;
  for (const char* text : {"",
                           " ",
                           "x",
                           "{",
                           "}",
                           "[]",
                           "1",
                           "null",
                           R"("id")",
                           R"({"id":1)",
                           R"({"id":1}})",
                           R"({"id":1} 2)",
                           R"({"id":})",
                           R"({"id" 1})",
                           R"({"id":1 "ts":2})",
                           R"({"id":"one"})",
                           R"({"id":-1})",
                           R"({"id":1.5})",
                           "{\"id\":1\xc3\xa9}",
                           R"({"ts":18446744073709551616})",
                           R"({"pid":4294967296})",
                           R"({"name":7})",
                           R"({"name":"a":7})",
                           R"({"name":"cuInit"} {})",
                           R"({"stream":"0xg"})",
                           R"({"stream":"7f"})",
                           R"({"grid":[1,2]})",
                           R"({"grid":[1,2,3,4]})",
                           R"({"grid":[1,2,-3]})",
                           R"({"grid":7})",
                           R"({"duration_us":"1"})",
                           R"({"duration_us":-1.000})",
                           R"({"args":7})",
                           R"({"args":{7,"losses":{}})",
                           "{\"name\":\"\xff\"}",
                           R"({"name":"a)"}) {
    INFO(text);
    CHECK_FALSE(p.parse(text));
  }
}

TEST_CASE("Names are kept once") {
  Names names;
  Name first = names.add("cuInit");
  CHECK(first);
  CHECK_FALSE(names.add(""));
  CHECK(names.add("cuMemAlloc") != first);
  CHECK(names.add(std::string("cu") + "Init") == first);
  for (int i = 0; i < 5000; i++) names.add("name " + std::to_string(i));
  CHECK(names.add("cuInit") == first);
  CHECK(names.text(names.add("name 4321")) == "name 4321");
  CHECK(names.text(names.add(std::string(Names::LONGEST, 'k'))).size() == Names::LONGEST);
  CHECK(names.add(std::string(Names::LONGEST + 1, 'k')) == Names::NOT_KEPT);
}

TEST_CASE("Fields that lines of a kind do not have are passed over") {
  Parsing p;
  REQUIRE(p.parse(R"({"type":"kernel","op":"interrupt","name":"isr","pid":7,"tid":8,"call":9})"));
  CHECK(p.line.kind == LineKind::interrupt);
  CHECK(p.text(p.line.op) == "interrupt");
  for (Field field : {Field::pid, Field::tid, Field::call}) CHECK_FALSE(p.line.has(field));
  CHECK(p.line.pid + p.line.tid + p.line.call == 0);
  REQUIRE(p.parse(R"({"type":"memory","op":"alloc","name":"cuMemAlloc","pid":7})"));
  CHECK(p.line.kind == LineKind::other);  // a call would have an id
  CHECK_FALSE(p.line.op);
  REQUIRE(p.parse(R"({"type":"process","op":"exec","pid":7})"));
  CHECK(p.text(p.line.op) == "exec");
}

TEST_CASE("A name that is too long is not kept; those of kernels are longer than others") {
  Parsing p;
  auto parse = [&](const std::string& key, std::size_t size) {
    return p.parse(R"({"id":1,")" + key + R"(":")" + std::string(size, 'n') + R"("})");
  };
  REQUIRE(parse("kernel", LineParser::MAX_NAME + 1));
  CHECK(p.text(p.line.kernel).size() == LineParser::MAX_NAME + 1);
  REQUIRE(parse("name", LineParser::MAX_NAME + 1));  // though it is known from that kernel
  CHECK(p.line.name == Names::NOT_KEPT);
  REQUIRE(parse("name", LineParser::MAX_NAME));
  CHECK(p.text(p.line.name).size() == LineParser::MAX_NAME);
  REQUIRE(parse("kernel", Names::LONGEST));
  CHECK(p.text(p.line.kernel).size() == Names::LONGEST);
  REQUIRE(parse("kernel", Names::LONGEST + 1));
  CHECK(p.line.kernel == Names::NOT_KEPT);
}

namespace {

// All that a line says, to compare two.
std::string all_of(const Parsing& p) {
  const Line& line = p.line;
  std::string all = fmt::format("{} {} {}", static_cast<int>(line.kind), line.present, line.args);
  auto put = [&](const auto& value) { all += fmt::format(" {}", value); };
  auto put_all = [&](const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, Dimensions>)
      for (auto one : value) put(one);
    else
      put(value);
  };
#define NUMBER(key, member, type, read, shown) put_all(line.member);
#define NAME(key, member, shown) put(p.text(line.member));
#define FLAG(key, member, shown) put(line.member);
#include "trace/read/line_fields.def"
  return all;
}

}  // namespace

TEST_CASE("A line as cudabpf writes it is read like the same JSON written in another way") {
  const std::string lines[] = {
      R"({"id":9,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":41000122,"duration_us":3.871,"pid":4242,"tid":4243,"ret":0,"stream":"0x7f2a40000000","async":true,"kernel":"add","grid":[4096,2,1],"block":[256,1,1],"shared":48,"handle":"0x55d0c8a1e2f0","ioctls":2,"ioctl_us":1.250,"device":0,"args":{"a":"}","b":{"c":1}},"parent":7})",
      R"({"id":1,"type":"init","name":"n","ts":18446744073709551615,"ret":-1})",
      R"({"id":1,"type":"init","name":"n","ts":1,"ret":-9223372036854775808})",
      R"({"id":1,"type":"init","name":"n","ts":01,"duration_us":1.5,"ret":1})",
      R"({"id":1,"type":"init","name":"n","ts":1,"duration_us":18446744073709551.615})",
      R"({"id":1,"type":"init","name":"n","ts":1,"pid":4294967296})",
      R"({"id":1,"type":"init","name":"n","ts":1,"ptr":"0xffffffffffffffff","dst":"0x1ffffffffffffffff"})",
      R"({"id":1,"type":"init","name":"n","ts":1,"ptr":"0x","dst":5})",
      R"({"id":1,"type":"init","name":"n","ts":1,"grid":[1,2],"block":[1,2,3,4]})",
      R"({"id":1,"type":"init","name":"n","ts":1,"grid":[1,2,4294967296]})",
      R"({"id":1,"type":"init","name":"","ts":null,"async":false,"device_file":"nvidiactl","unknown":1.5,"other":"x\ty"})",
      R"({"type":"kernel","op":"interrupt","name":"isr","ts":1,"pid":7,"tid":8,"call":9,"device":-1})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":[1,2]},"args_too":{"b":1}})",
      R"({"id":1,"name":"n","ts":1,"args":{}})",
      R"({"id":1,"name":"n","ts":1,"args":{9})",
      R"({"id":1,"name":"n","ts":1,"args":5})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":{},"b":{"c":{"d":-1}},"e":null,"f":true,"g":""},"ret":2})",
      R"({"id":1,"name":"n","ts":1,"args":{"a"1,"b":2}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":1 2}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":1,}})",
      R"({"id":1,"name":"n","ts":1,"args":{,"a":1}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":{}}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":1"b":2}})",
      R"({"id":1,"name":"n","ts":1,"args":{"a":{"b":1})",
      R"({"id":1,"name":"n","ts":1,})",
      R"({"id":1,"name":"n","ts":1)",
      R"({"id":1,"name":"n","ts":1}})",
      R"({"id":1,"name":"n\","ts":1})",
      R"({"id":1,"name":"n,"ts":1})",
      R"({"id":1 ,"name":"n","ts":1})",
      R"({"id":1,"name":"n","ts":1,"x":tru})",
      "{\"id\":1,\"a\xff\":1}",
      "{\"id\":1,\"a\x01\":1}",
      "{\"id\":1,\"a\":\"\xff\"}",
      "{\"id\":1,\"args\":{\"a\":\"\xff\"}}",
      R"({})",
      R"({"id":1,"id":2,"name":"n","ts":1,"ts":2})",
  };
  for (const std::string& text : lines) {
    CAPTURE(text);
    Parsing warm, blanks;
    bool first = warm.parse(text);  // names are not known yet
    std::string of_first = first ? all_of(warm) : "";
    bool again = warm.parse(text);
    CHECK(again == first);
    if (again) CHECK(all_of(warm) == of_first);
    bool other = blanks.parse("{ " + text.substr(1));
    CHECK(other == first);
    if (other) CHECK(all_of(blanks) == of_first);
  }
}

namespace {

// Lines of two calls and an operation of a GPU: mostly alike, sometimes with a field more or less,
// or twice, or with a byte that is another.
class LinesAtRandom {
 public:
  std::string next() {
    const Fields& kind = KINDS[any(std::size(KINDS))];
    std::string line = "{";
    for (const auto& choices : kind) {
      if (any(60) == 0) continue;
      for (std::size_t times = any(80) ? 1 : 2; times > 0; times--)
        line += choices[any(3) ? 0 : any(choices.size())] + ",";
    }
    line.back() = '}';
    if (any(20) == 0) line[any(line.size() - 1) + 1] = R"(,"}:0a)"[any(6)];
    if (any(40) == 0) line.resize(any(line.size()) + 1);
    if (any(40) == 0) line += line.substr(line.size() - std::min<std::size_t>(line.size(), 24));
    return line;
  }

 private:
  using Fields = std::vector<std::vector<std::string>>;
  std::size_t any(std::size_t count) { return random_() % count; }

  const Fields KINDS[3] = {
      {{R"("id":9)", R"("id":10)", R"("id":12345678901234567890)"},
       {R"("type":"kernel")"},
       {R"("op":"launch")"},
       {R"("name":"cuLaunchKernel")"},
       {R"("ts":41000122)", R"("ts":7)", R"("ts":18446744073709551615)"},
       {R"("duration_us":3.871)", R"("duration_us":1.000)", R"("duration_us":1.5)"},
       {R"("tid":4243)", R"("tid":4244)"},
       {R"("stream":"0x0")", R"("stream":"0x7f2a40000000")"},
       {R"("async":true)", R"("async":false)"},
       {R"("kernel":"add")", R"("kernel":"gemm")", R"("kernel":"a\tb")"},
       {R"("grid":[4096,2,1])", R"("grid":[4096,2,10])", R"("grid":[1,1])"},
       {R"("args":{"a":"}","b":{"c":1}})", R"("args":{"a":1})", R"("args":{})"},
       {R"("handle":"0x55d0c8a1e2f0")", R"("handle":"0x55d0c8a1e2ff")"},
       {R"("device":0)"}},
      {{R"("id":1)", R"("id":2)"},
       {R"("type":"memory")"},
       {R"("op":"alloc")"},
       {R"("name":"cuMemAlloc")"},
       {R"("ts":1)", R"("ts":22)"},
       {R"("duration_us":0.100)", R"("duration_us":20.100)"},
       {R"("ret":0)", R"("ret":-1)", R"("ret":2)"},
       {R"("new":"x")", R"("new":12.5)", R"("newer":"x")"},
       {R"("size":4096)", R"("size":1)"},
       {R"("ptr":"0x7f0000000000")", R"("ptr":"0x1")"},
       {R"("parent":7)"}},
      {{R"("type":"gpu")"},
       {R"("op":"kernel")"},
       {R"("ts":41000122)", R"("ts":41000123)"},
       {R"("duration_us":3.871)", R"("duration_us":13.871)"},
       {R"("call":9)", R"("call":10)"},
       {R"("kernel":"add")", R"("kernel":"gemm")"},
       {R"("block":[256,1,1],"device":0,"queue":1)"}},
  };
  std::mt19937 random_{1};
};

}  // namespace

TEST_CASE("A line is read alike, whichever came before it") {
  constexpr int COUNT = 20'000;
  LinesAtRandom lines;
  Parsing warm, blanks;
  int good = 0;
  for (int i = 0; i < COUNT; i++) {
    std::string text = lines.next();
    bool is_good = warm.parse(text);
    CAPTURE(i, text);
    REQUIRE(is_good == blanks.parse("{ " + text.substr(1)));
    if (is_good && all_of(warm) != all_of(blanks)) FAIL(text);
    good += is_good;
  }
  CHECK(good > COUNT / 2);
  CHECK(good < COUNT);
}
