#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "cudabpf/abi.h"
#include "cudabpf/product.hpp"
#include "support/sample_calls.hpp"
#include "trace/write/call_line.hpp"

using namespace cudabpf;

namespace {

std::string line_of(const Call& call) {
  static CallLine lines;
  std::string text(lines.bound(call), '\0');
  text.resize(static_cast<std::size_t>(lines.write(text.data(), call) - text.data()));
  REQUIRE(text.ends_with("}\n"));
  REQUIRE(nlohmann::json::accept(text));
  return text.substr(0, text.size() - 1);
}

nlohmann::json parsed(const Call& call) { return nlohmann::json::parse(line_of(call)); }

std::string with_common(const std::string& name, const std::string& rest) {
  return R"({"id":1,)" + name + R"(,"ts":1000,"duration_us":2.500,"pid":4242,"tid":4243,"ret":0)" +
         rest + "}";
}

}  // namespace

TEST_CASE("Calls as lines") {
  SECTION("a launch") {
    SampleCall call("cuLaunchKernel", {0x55d0, 4096, 2, 1, 256, 1, 1, 1024, 0x7f00, 0x1234, 0});
    auto name = kernel_named("add<\"x\">(float*)", "add");
    call.kernel = &name;
    CHECK(line_of(call) ==
          with_common(R"("type":"kernel","op":"launch","name":"cuLaunchKernel")",
                      R"j(,"stream":"0x7f00","async":true,"kernel":"add<\"x\">(float*)",)j"
                      R"("grid":[4096,2,1],"block":[256,1,1],"shared":1024,"handle":"0x55d0")"));
    name.from_handle = true;
    CHECK(parsed(call)["kernel_from"] == "handle");
  }
  SECTION("a copy") {
    SampleCall call("cuMemcpyHtoDAsync_v2", {0x7f2a40000000, 0x55550000, 1 << 20, 0});
    CHECK(
        line_of(call) ==
        with_common(
            R"("type":"transfer","op":"HtoD","name":"cuMemcpyHtoDAsync","symbol":"cuMemcpyHtoDAsync_v2")",
            R"(,"size":1048576,"dst":"0x7f2a40000000","src":"0x55550000","stream":"0x0","async":true)"));
  }
  SECTION("a copy whose direction was inferred") {
    SampleCall call("cuMemcpy", {0x1, 0x2, 3});
    CHECK(parsed(call)["op"] == "unified");
    CHECK(!parsed(call).contains("inferred"));
    call.details.op = Op::DtoH;
    call.details.inferred_op = true;
    CHECK(line_of(call) == with_common(R"("type":"transfer","op":"DtoH","name":"cuMemcpy")",
                                       R"(,"size":3,"dst":"0x1","src":"0x2","inferred":true)"));
  }
  SECTION("an allocation") {
    SampleCall call("cuMemAlloc_v2", {0x7ffe1000, 4096}, {0x7f2a40000000});
    CHECK(
        line_of(call) ==
        with_common(R"("type":"memory","op":"alloc","name":"cuMemAlloc","symbol":"cuMemAlloc_v2")",
                    R"(,"size":4096,"ptr":"0x7f2a40000000","kind":"device")"));
    call.fail(2);
    CHECK(
        line_of(call) ==
        R"({"id":1,"type":"memory","op":"alloc","name":"cuMemAlloc","symbol":"cuMemAlloc_v2","ts":1000,"duration_us":2.500,"pid":4242,"tid":4243,"ret":2,"error":"CUDA_ERROR_OUT_OF_MEMORY","size":4096,"kind":"device"})");
  }
  SECTION("one that was made inside of another") {
    SampleCall call("cuInit", {0});
    call.parent = 77;
    CHECK(line_of(call) == with_common(R"("type":"init","op":"init","name":"cuInit")",
                                       R"(,"parent":77,"args":{"flags":0})"));
  }
}

TEST_CASE("A call that a collective made, and the collective") {
  SampleCall call("cuInit", {0});
  call.within = 76;
  CHECK(line_of(call) == with_common(R"("type":"init","op":"init","name":"cuInit")",
                                     R"(,"within":76,"args":{"flags":0})"));
  SampleCall sum("ncclAllReduce", {0x1000, 0x2000, 10, 9, 7, 0x5e00, 0});
  CHECK(
      line_of(sum) ==
      with_common(
          R"("type":"collective","op":"all_reduce","name":"ncclAllReduce","library":"nccl","layer":1)",
          R"(,"count":10,"datatype":"bfloat16","reduction":7,"size":20,"ptr":"0x1000",)"
          R"("stream":"0x0","args":{"recvbuff":"0x2000","comm":"0x5e00"})"));
  Communicator communicator;
  communicator.number = 3;
  communicator.rank = 1;
  communicator.ranks = 8;
  sum.communicator = &communicator;
  sum.sequence = 12;
  sum.group = 5;
  CHECK(line_of(sum).find(
            R"("ret":0,"communicator":3,"rank":1,"ranks":8,"seq":12,"call_group":5,"count":10)") !=
        std::string::npos);
  sum.fail(4);
  CHECK(parsed(sum)["error"] == "ncclInvalidArgument");
  SampleCall text("ncclGetErrorString", {4});
  text.fail(0x7f001234);  // the lower half of an address
  CHECK_FALSE(parsed(text).contains("ret"));
  CHECK_FALSE(parsed(text).contains("error"));
}

TEST_CASE("Arguments that no field has are under args, in their own width") {
  SECTION("text") {
    SampleCall call("cuModuleGetFunction", {0x1, 0x2, 0x3}, {0xf00});
    call.text = "a\"\xff";
    call.has_text = true;
    CHECK(parsed(call)["args"] ==
          nlohmann::json({{"hfunc", "0xf00"}, {"hmod", "0x2"}, {"name", "a\"\ufffd"}}));
    call.has_text = false;
    CHECK(parsed(call)["args"] == nlohmann::json({{"hfunc", "0xf00"}, {"hmod", "0x2"}}));
  }
  SECTION("upper halves of narrow words are whatever the register held") {
    constexpr std::uint64_t JUNK = 0xdeadbeef00000000;
    SampleCall set("cuMemsetD8_v2", {0x7f00, JUNK | 0x1ff, 16});
    CHECK(parsed(set)["args"] == nlohmann::json({{"uc", 0xff}}));
    SampleCall attribute("cuDeviceGetAttribute", {0x1, JUNK | 0xffffffff, JUNK | 1}, {JUNK | 80});
    CHECK(attribute.details.device == 1);
    CHECK(parsed(attribute)["args"]["pi"] == 80);
  }
  SECTION("signed, 64-bit and floating-point values") {
    SampleCall priority("cuCtxGetStreamPriorityRange", {1, 2}, {0, 0xfffffffb});
    CHECK(parsed(priority)["args"] ==
          nlohmann::json({{"leastPriority", 0}, {"greatestPriority", -5}}));
    SampleCall limit("cuCtxSetLimit", {1, 0xffffffffffffffff});
    CHECK(line_of(limit).ends_with(R"("args":{"limit":1,"value":18446744073709551615}})"));
    SampleCall elapsed("cuEventElapsedTime", {1, 2, 3}, {std::bit_cast<std::uint32_t>(1.5f)});
    CHECK(parsed(elapsed)["args"]["pMilliseconds"] == 1.5);
    elapsed.own_outs[0] = 0x7f800000;  // infinity
    CHECK(parsed(elapsed)["args"]["pMilliseconds"].is_null());
  }
  SECTION("null out-pointers") {
    SampleCall range("cuMemGetAddressRange_v2", {0, 2, 0x7f00}, {0, 4096});
    CHECK(parsed(range)["args"] == nlohmann::json({{"pSize", 4096}}));
  }
  SECTION("locations") {
    SampleCall call("cuMemPrefetchAsync_v2", {0x7f00, 4096, (std::uint64_t{3} << 32) | 1, 0, 0});
    CHECK(parsed(call)["args"]["location"] == nlohmann::json({{"type", "device"}, {"id", 3}}));
    call.own_words[2] = 99;
    CHECK(parsed(call)["args"]["location"] == nlohmann::json({{"type", 99}, {"id", 0}}));
  }
  SECTION("factors of a size are not shown by it") {
    SampleCall call("cuMemsetD2D32_v2", {0x7f00, 512, 7, 16, 4});
    CHECK(parsed(call)["size"] == 256);
    CHECK(parsed(call)["args"] ==
          nlohmann::json({{"dstPitch", 512}, {"ui", 7}, {"Width", 16}, {"Height", 4}}));
  }
}

TEST_CASE("Every flag of a call") {
  SampleCall call("cuCtxSynchronize");
  auto true_keys = [&] {
    std::vector<std::string> keys;
    const nlohmann::json line = parsed(call);
    for (const auto& [key, value] : line.items())
      if (value == true) keys.push_back(key);
    return keys;
  };
  using Keys = std::vector<std::string>;
  CHECK(true_keys() == Keys{});
  SECTION("unfinished") {
    call.unfinished = true;
    call.has_return = false;
    CHECK(
        line_of(call) ==
        R"({"id":1,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":1000,"pid":4242,"tid":4243,"unfinished":true})");
  }
  SECTION("return lost") {
    call.return_lost = true;
    call.has_return = false;
    CHECK(
        line_of(call) ==
        R"({"id":1,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":1000,"pid":4242,"tid":4243,"return_lost":true})");
  }
  SECTION("entry lost") {
    call.entry_lost = true;
    call.has_return = false;
    call.result = 700;
    CHECK(
        line_of(call) ==
        R"({"id":1,"type":"sync","op":"ctx","name":"cuCtxSynchronize","ts":1000,"pid":4242,"tid":4243,"ret":700,"error":"CUDA_ERROR_ILLEGAL_ADDRESS","entry_lost":true})");
  }
  SECTION("read fault and cut text") {
    call.read_fault = true;
    CHECK(true_keys() == Keys{"read_fault"});
    call.string_cut = true;
    CHECK(true_keys() == Keys{"read_fault", "text_cut"});
  }
  SECTION("an error that the table does not have") {
    call.result = 1234;
    CHECK(parsed(call)["error"] == "unknown (1234)");
    call.result = -1;
    CHECK(parsed(call)["ret"] == -1);
    CHECK(parsed(call)["error"] == "unknown (-1)");
  }
}

TEST_CASE("A function that the table does not know shows its raw registers") {
  Function function = unknown_function(ApiId::cuda, "cuNew\"Thing");
  std::uint64_t words[] = {1, 2, 3, 4, 5, 6};
  Call call;
  call.id = 9;
  call.function = &function;
  call.words = words;
  CHECK(
      line_of(call) ==
      R"({"id":9,"type":"other","op":"other","name":"cuNew\"Thing","ts":0,"pid":0,"tid":0,"args":{"arg0":1,"arg1":2,"arg2":3,"arg3":4,"arg4":5,"arg5":6}})");
}

// Decoding fills Details, and the line leaves out what Details has: between them, nothing may be
// lost or written twice.
TEST_CASE("Every recorded argument of every function is in its line exactly once") {
  for (const Function& function : cuda_functions()) {
    CAPTURE(function.symbol);
    std::vector<std::uint64_t> words, outs;
    std::map<std::string, std::string> expected;  // value as JSON -> argument
    const SizeRule& size = function.size;
    for (const Argument& argument : function.arguments) {
      if (argument.word < 0 || argument.word >= CB_MAX_ARGS) continue;
      auto place = static_cast<std::size_t>(argument.word);
      while (words.size() <= place) words.push_back(101 + words.size());
      if (argument.out && outs.size() == CB_MAX_OUTS) continue;
      if (argument.out) outs.push_back(201 + outs.size());
      if (argument.role == Role::hidden || argument.role == Role::in_struct ||
          is_text(argument.role) || argument.role == Role::f32)
        continue;
      // A learner makes fields of these.
      if (function.type == Type::product && is_told_by_product(argument.name)) continue;
      bool sizes = size.kind == SizeRule::Kind::product && size.times < 0 &&
                   &argument == &function.arguments[static_cast<std::size_t>(size.argument)];
      std::uint64_t value = (argument.out ? outs.back() : words[place]) * (sizes ? size.unit : 1);
      expected[std::to_string(value)] = argument.name;
    }
    SampleCall call(std::string(function.symbol).c_str(), words, outs);
    std::map<std::string, int> seen;
    auto count = [&](auto& self, const nlohmann::json& value) -> void {
      if (value.is_structured()) {
        for (const auto& item : value) self(self, item);
      } else if (value.is_number()) {
        seen[value.dump()]++;
      } else if (value.is_string() && value.get<std::string>().starts_with("0x")) {
        seen[std::to_string(std::stoull(value.get<std::string>(), nullptr, 16))]++;
      }
    };
    nlohmann::json line = parsed(call);
    for (const char* common : {"id", "ts", "duration_us", "pid", "tid", "ret"}) line.erase(common);
    // A location's low half is its type: read it back.
    if (line.contains("args") && line["args"].contains("location"))
      line["args"]["location"] = line["args"]["location"]["type"];
    count(count, line);
    for (const auto& [value, argument] : expected) {
      CAPTURE(argument, line.dump());
      CHECK(seen[value] == 1);
    }
  }
}
