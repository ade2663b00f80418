#include "analyze/questions/errors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string call(int id, const std::string& name, int ts, const std::string& more, int pid = 7) {
  return R"({"id":)" + std::to_string(id) + R"(,"type":"memory","op":"alloc","name":")" + name +
         R"(","ts":)" + std::to_string(ts) + R"(,"pid":)" + std::to_string(pid) + R"(,"tid":70)" +
         more + "}\n";
}
const std::string GOOD = R"(,"duration_us":1.000,"ret":0)";
const std::string NO_MEMORY =
    R"(,"duration_us":1.000,"ret":2,"error":"CUDA_ERROR_OUT_OF_MEMORY","args":{"bytesize":9})";

struct ErrorAnswers {
  Errors::Answer answer;
  Json json;
  std::string page;
};

ErrorAnswers error_answers(const std::string& lines, bool all = false) {
  TraceText trace(lines);
  Errors errors(trace.names(), all);
  Memory memory(trace.names());
  trace.show({&errors, &memory});
  ErrorAnswers answers{errors.answer(), {}, {}};
  answers.json = errors_json(answers.answer, memory);
  answers.page = page_text([&](Page& page) { add_errors(page, answers.answer, memory, 10); }, 160);
  return answers;
}

}  // namespace

TEST_CASE("Calls that failed, each kind with how often and when") {
  ErrorAnswers of =
      error_answers(call(1, "cuMemAlloc", 100, GOOD) + call(2, "cuMemAlloc", 200, NO_MEMORY) +
                    call(4, "cuMemAlloc", 400, NO_MEMORY) + call(3, "cuMemAlloc", 150, NO_MEMORY) +
                    call(5, "cuCtxSynchronize", 500,
                         R"(,"duration_us":1.000,"ret":700,"error":"CUDA_ERROR_ILLEGAL_ADDRESS")") +
                    call(6, "cuNew", 600, R"(,"duration_us":1.000,"ret":77777)"));
  CHECK(of.answer.calls == 6);
  CHECK(of.answer.failed_calls == 5);
  REQUIRE(of.answer.failures.size() == 3);
  CHECK(of.answer.failures[0].error == "CUDA_ERROR_ILLEGAL_ADDRESS");
  const Errors::Failure& first = of.answer.failures[1];
  CHECK(first.name == "cuMemAlloc");
  CHECK(first.error == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(first.count == 3);
  CHECK(first.first == 150);
  CHECK(first.last == 400);
  CHECK(first.example.id == 2);
  CHECK(first.example.pid == 7);
  CHECK(first.example.tid == 70);
  CHECK(first.example.text == R"({"bytesize":9})");
  CHECK(of.answer.failures[2].error == "result 77777");
  CHECK_THAT(of.page, ContainsSubstring("5 of 6 calls failed."));
  CHECK_THAT(of.page, ContainsSubstring("a kernel that was launched before failed"));
  CHECK(of.json["failures"][1]["example"]["id"] == 2);
  CHECK(of.answer.events.empty());
}

TEST_CASE("An answer that work goes on is no error") {
  ErrorAnswers of = error_answers(call(1, "cuEventQuery", 1, R"(,"duration_us":1.000,"ret":600)"));
  CHECK(of.answer.failures.empty());
  CHECK(of.page == "None of 1 call failed.\n");
}

TEST_CASE("What did not return, the longest first") {
  std::string exit = R"({"type":"process","op":"exit","ts":5000,"pid":8,"comm":"a","signal":9})"
                     "\n";
  ErrorAnswers of =
      error_answers(call(2, "cuStreamSynchronize", 4000, R"(,"parent":1,"unfinished":true)", 8) +
                    call(1, "cuCtxSynchronize", 3000, R"(,"unfinished":true)", 8) + exit +
                    call(9, "cuMemAlloc", 6000, GOOD) +
                    R"({"type":"kernel","op":"poll","name":"poll","ts":8999999,"pid":7,"tid":70,)"
                    R"("call":5,"unfinished":true})"
                    "\n" +
                    call(5, "cuEventSynchronize", 8000000, R"(,"unfinished":true)"));
  const auto& open = of.answer.open;
  REQUIRE(open.size() == 4);
  CHECK(open[0].what == "cuEventSynchronize");
  CHECK(open[0].open_for == 1000000);
  CHECK_FALSE(open[0].process_ended);
  CHECK(open[1].what == "cuCtxSynchronize");
  CHECK(open[1].open_for == 2000);
  CHECK(open[1].process_ended);
  CHECK(open[2].parent == 1);
  CHECK(open[3].what == "poll");
  CHECK(open[3].parent == 5);
  CHECK(of.answer.calls_open == 3);
  CHECK(of.answer.without_result == 3);
  CHECK_THAT(of.page, ContainsSubstring("None of 1 call failed.\n\n"));  // of those it is known

  REQUIRE(of.answer.exits.size() == 1);
  CHECK(of.json["processes"][0]["signal"] == 9);
  CHECK(of.json["processes"][0]["last_call"]["name"] == "cuCtxSynchronize");
  CHECK(of.json["processes"][0]["last_call"]["unfinished"] == true);
  CHECK_THAT(of.page, ContainsSubstring("signal 9 (SIGKILL)"));
}

TEST_CASE("Processes that ended badly, and what they did last") {
  auto exit = [](int pid, const std::string& how) {
    return R"({"type":"process","op":"exit","ts":900,"pid":)" + std::to_string(pid) +
           R"(,"comm":"app",)" + how + "}\n";
  };
  ErrorAnswers of = error_answers(
      call(1, "cuMemAlloc", 100, NO_MEMORY, 1) + call(2, "cuMemFree", 200, GOOD, 1) +
      call(3, "cuInit", 300, GOOD, 2) + exit(1, R"("exit_code":1)") + exit(2, R"("exit_code":0)") +
      exit(3, R"("signal":6)") + exit(1, R"("exit_code":4)"));  // the pid was used again
  REQUIRE(of.answer.exits.size() == 3);
  CHECK(of.json["processes"][0]["exit_code"] == 1);
  CHECK(of.json["processes"][0]["last_call"]["name"] == "cuMemFree");
  CHECK(of.json["processes"][0]["last_failure"]["error"] == "CUDA_ERROR_OUT_OF_MEMORY");
  CHECK(of.json["processes"][1]["signal"] == 6);
  CHECK(of.json["processes"][1]["last_call"].is_null());
  CHECK(of.json["processes"][2]["last_call"].is_null());
}

TEST_CASE("What the driver refused, and errors of GPUs") {
  auto ioctl = [](const std::string& more) {
    return R"({"type":"kernel","op":"ioctl","name":"NV_ESC_RM_ALLOC","ts":50,"duration_us":1.000,)"
           R"("pid":7,"tid":70,"class":"NV01_MEMORY_LOCAL_USER","call":3,)" +
           more + "}\n";
  };
  std::string xid = R"({"type":"error","op":"xid","name":"Xid 79","ts":60,"xid":79,)"
                    R"("meaning":"the GPU has fallen off the bus","bus_id":"0000:3b:00.0",)"
                    R"("pid":7,"message":"GPU has fallen\u001b[2J off"})"
                    "\n";
  ErrorAnswers of = error_answers(ioctl(R"("ret":0,"status":"NV_OK")") +
                                  ioctl(R"("ret":0,"status":"NV_ERR_NO_MEMORY")") +
                                  ioctl(R"("ret":-22,"error":"EINVAL")") + xid + xid);
  CHECK(of.answer.failed_operations == 2);
  REQUIRE(of.answer.refusals.size() == 2);
  CHECK(of.answer.refusals[0].name == "NV_ESC_RM_ALLOC NV01_MEMORY_LOCAL_USER");
  CHECK(of.answer.refusals[1].error == "NV_ERR_NO_MEMORY");
  CHECK(of.answer.refusals[0].example.id == 3);
  CHECK(of.answer.refusals[0].error == "EINVAL");
  REQUIRE(of.answer.gpu_errors.size() == 1);
  CHECK(of.answer.gpu_errors[0].name == "Xid 79 0000:3b:00.0");
  CHECK(of.answer.gpu_errors[0].error == "the GPU has fallen off the bus");
  CHECK(of.answer.gpu_errors[0].count == 2);
  CHECK(of.page.find('\033') == std::string::npos);
}

TEST_CASE("Where results are not recorded it is not said that nothing failed") {
  std::string open = call(1, "cuMemAlloc", 1, "");
  CHECK(error_answers(open + open).page ==
        "Whether 2 calls failed is not known: the trace lacks their results.\n");
  CHECK_THAT(error_answers(open + call(2, "cuInit", 2, GOOD)).page,
             ContainsSubstring("None of 1 call failed.\nWhether 1 other failed is not known"));
}

TEST_CASE("One by one, in the order in which they began") {
  ErrorAnswers of = error_answers(
      call(2, "cuMemAlloc", 200, NO_MEMORY) + call(1, "cuMemAlloc", 100, NO_MEMORY) +
          call(3, "cuMemAlloc", 300, R"(,"unfinished":true)") +
          R"({"type":"process","op":"exit","ts":250,"pid":9,"comm":"b","exit_code":2})" + "\n",
      true);
  std::vector<std::uint64_t> order;
  for (const auto& event : of.answer.events) order.push_back(event.ts);
  CHECK(order == std::vector<std::uint64_t>{100, 200, 250, 300});
  CHECK(of.answer.events[2].error == "exit status 2");
  CHECK(of.json["events"].size() == 4);
}

TEST_CASE("What could not be read is listed by function") {
  ErrorAnswers of = error_answers(call(1, "cuModuleLoadData", 1, GOOD + R"(,"read_fault":true)") +
                                  call(2, "cuModuleLoadData", 2, GOOD + R"(,"read_fault":true)"));
  REQUIRE(of.answer.read_faults.size() == 1);
  CHECK(of.answer.read_faults[0].count == 2);
  CHECK(of.answer.failed_calls == 0);
}

TEST_CASE("The gravest is first, what is usual last") {
  auto failed = [](int id, const std::string& name, const std::string& error) {
    return call(id, name, id,
                R"(,"duration_us":1.000,"ret":1,"error":"CUDA_ERROR_)" + error + "\"");
  };
  ErrorAnswers of = error_answers(
      failed(1, "cuLibraryUnload", "DEINITIALIZED") +
      failed(2, "cuLibraryUnload", "DEINITIALIZED") +
      failed(3, "cuLibraryUnload", "DEINITIALIZED") + failed(4, "cuMemAlloc", "OUT_OF_MEMORY") +
      failed(5, "cuMemAlloc", "OUT_OF_MEMORY") + failed(6, "cuCtxSynchronize", "ILLEGAL_ADDRESS"));
  std::vector<std::string> order;
  for (const Json& failure : of.json["failures"])
    order.push_back(failure["error"].get<std::string>().substr(11) + " " +
                    failure["weight"].get<std::string>());
  CHECK(order == std::vector<std::string>{"ILLEGAL_ADDRESS grave", "OUT_OF_MEMORY failure",
                                          "DEINITIALIZED usual"});
  CHECK(of.json["usual_failures"] == 3);
  CHECK(of.page.starts_with("6 of 6 calls failed, 3 of them expected.\n"));
  CHECK(of.page.find("ILLEGAL_ADDRESS") < of.page.find("OUT_OF_MEMORY"));
  CHECK(of.page.find("OUT_OF_MEMORY") < of.page.find("DEINITIALIZED"));
  CHECK(of.page.find(
            "3 cuLibraryUnload failed with CUDA_ERROR_DEINITIALIZED. This is expected: they") >
        of.page.find("OUT_OF_MEMORY"));
  CHECK(of.json["failures"][0]["benign"] == false);
  CHECK(of.json["failures"][2]["benign"] == true);
}

TEST_CASE("Errors of GPUs are before all others, one by one too") {
  auto xid = [](const std::string& more) {
    return R"({"type":"error","op":"xid","name":"Xid 79","ts":60,"xid":79,"bus_id":"0000:3b")" +
           more + "}\n";
  };
  ErrorAnswers of =
      error_answers(call(1, "cuMemAlloc", 1, NO_MEMORY) + xid(R"(,"meaning":"it is gone")") +
                        xid(R"(,"meaning":null,"message":"x")"),
                    true);
  CHECK(of.page.find("errors of GPUs") < of.page.find("calls that failed"));
  REQUIRE(of.answer.events.size() == 3);
  CHECK(of.answer.events[1].what == "Xid 79");
  CHECK(of.answer.events[1].error == "it is gone");
  CHECK(of.answer.events[2].error == "of unknown meaning");
}

TEST_CASE("What is not listed one by one is counted") {
  constexpr int MANY = 1200;
  std::string lines;
  for (int i = 1; i <= MANY; i++)
    lines += call(i, "cuCtxSynchronize", i, R"(,"unfinished":true)", i) +
             R"({"type":"process","op":"exit","ts":5000,"pid":)" + std::to_string(i) +
             R"(,"comm":"a","signal":9})" + "\n";
  ErrorAnswers of = error_answers(lines);
  CHECK(of.answer.exits.size() == 1000);
  CHECK(of.answer.bad_exits == MANY);
  CHECK(of.json["processes_left_out"] == 200);
  CHECK(of.answer.all_open == MANY);
  CHECK(of.json["unfinished_left_out"] == 200);
  CHECK_THAT(of.page, ContainsSubstring("1,190 more"));
}
