#include "analyze/questions/ioctls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string TRACED = R"(,"driver_traced":true,"driver_way":"driver_fentry")";

std::string operation(const std::string& op, const std::string& name, int us,
                      const std::string& more) {
  return R"({"type":"kernel","op":")" + op + R"(","name":")" + name +
         R"(","ts":10,"duration_us":)" + std::to_string(us) + R"(.000,"pid":7,"tid":7,)" + more +
         "}\n";
}
std::string control(int us, const std::string& more) {
  return operation("ioctl", "NV_ESC_RM_CONTROL", us,
                   R"("device_file":"nvidiactl","control":"NVA06C_CTRL_CMD_GPFIFO_SCHEDULE",)"
                   R"("group":"scheduling",)" +
                       more);
}
std::string call(int id, const std::string& name, int us) {
  return R"({"id":)" + std::to_string(id) + R"(,"type":"init","op":"init","name":")" + name +
         R"(","ts":5,"duration_us":)" + std::to_string(us) +
         R"(.000,"pid":7,"tid":7,"ret":0,"ioctls":2,"ioctl_us":1.0})" + "\n";
}

// "name count ioctls failed total"
std::vector<std::string> figure_rows(const std::vector<Ioctls::Figures>& all) {
  std::vector<std::string> rows;
  rows.reserve(all.size());
  for (const auto& of : all)
    rows.push_back(of.name + " " + std::to_string(of.count) + " " + std::to_string(of.ioctls) +
                   " " + std::to_string(of.failed) + " " +
                   std::to_string(of.durations.total() / 1000));
  return rows;
}
using Rows = std::vector<std::string>;

Ioctls::Answer answer_of(const std::string& lines, const std::string& header = TRACED) {
  TraceText trace(lines, header);
  Ioctls ioctls(trace.names());
  trace.show(ioctls);
  return ioctls.answer();
}

}  // namespace

TEST_CASE("What was requested from the driver, by command, group, call, device and process") {
  Ioctls::Answer answer = answer_of(
      R"({"type":"process","op":"start","ts":1,"pid":7,"comm":"python"})"
      "\n" +
      operation("open", "open", 3, R"("ret":0,"call":1,"device_file":"nvidia0")") +
      control(40, R"("ret":0,"call":1,"status":"NV_OK")") +
      control(60, R"("ret":0,"call":1,"status":"NV_ERR_NO_MEMORY")") + call(1, "cuInit", 200) +
      call(2, "cuInit", 1) +
      operation(
          "ioctl", "NV_ESC_RM_ALLOC", 500,
          R"("ret":0,"call":3,"device_file":"nvidiactl","class":"NV01_ROOT","group":"channel",)"
          R"("status":"NV_OK")") +
      call(3, "cuCtxCreate", 900) +
      operation("ioctl", "UVM_FREE", 7,
                R"("ret":-22,"error":"EINVAL","device_file":"nvidia-uvm","group":"memory")"));
  CHECK(answer.traced);
  CHECK(answer.way == "driver_fentry");
  CHECK(figure_rows(answer.operations) == Rows{"ioctl 4 4 2 607", "open 1 0 0 3"});
  CHECK(figure_rows(answer.groups) ==
        Rows{"channel 1 1 0 500", "scheduling 2 2 1 100", "memory 1 1 1 7"});
  CHECK(figure_rows(answer.commands) == Rows{"NV_ESC_RM_ALLOC NV01_ROOT 1 1 0 500",
                                             "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE 2 2 1 100",
                                             "UVM_FREE 1 1 1 7"});
  CHECK(figure_rows(answer.devices) ==
        Rows{"nvidiactl 3 3 1 600", "nvidia-uvm 1 1 1 7", "nvidia0 1 0 0 3"});
  CHECK(figure_rows(answer.processes) == Rows{"python (7) 5 4 2 610"});
  CHECK(figure_rows(answer.outside) == Rows{"python (7) 1 1 1 7"});
  CHECK(figure_rows(answer.calls) == Rows{"cuCtxCreate 1 1 0 500", "cuInit 3 2 1 103"});
  CHECK(answer.calls[1].calls == 1);
  CHECK(answer.calls[1].of_calls == 2);
  CHECK(answer.calls[1].call_time == 200'000);
}

TEST_CASE("What is no failure, and what has no duration") {
  Ioctls::Answer answer = answer_of(
      operation("poll", "poll", 9, R"("ret":-516,"device_file":"nvidia0")") +
      operation("poll", "poll", 9, R"("ret":-4,"error":"EINTR","device_file":"nvidia0")") +
      operation("fault", "fault", 9, R"("ret":256,"device_file":"nvidia-uvm")") +
      operation("fault", "fault", 9,
                R"("ret":2,"error":"VM_FAULT_SIGBUS","device_file":"nvidia-uvm")") +
      R"({"type":"kernel","op":"mmap","name":"mmap","ts":1,"pid":7,"unfinished":true})" + "\n" +
      R"({"type":"kernel","op":"interrupt","name":"isr","ts":1,"duration_us":5.000})" + "\n");
  CHECK(figure_rows(answer.operations) ==
        Rows{"fault 2 0 1 18", "poll 2 0 1 18", "interrupt: isr 1 0 0 5", "mmap 1 0 0 0"});
  CHECK(answer.operations[3].durations.count() == 0);
  CHECK(figure_rows(answer.processes) == Rows{"process (7) 5 0 2 36"});
  CHECK(answer.groups.empty());
  CHECK_THAT(page_text([&](Page& page) { add_ioctls(page, answer, IoctlsBy::everything, 9); }),
             ContainsSubstring("A poll waits"));
}

TEST_CASE("Operations of a call that has no line are its own") {
  Ioctls::Answer answer = answer_of(control(40, R"("ret":0,"call":5,"status":"NV_OK")"));
  CHECK(figure_rows(answer.calls) == Rows{"(calls without a line) 1 1 0 40"});
  CHECK(answer.outside.empty());
}

TEST_CASE("A process with a reused pid is another one") {
  auto process = [](const std::string& op, const std::string& comm) {
    return R"({"type":"process","op":")" + op + R"(","ts":1,"pid":7,"comm":")" + comm + "\"}\n";
  };
  std::string open = operation("open", "open", 1, R"("ret":0,"device_file":"nvidia0")");
  CHECK(figure_rows(answer_of(process("start", "a") + open + process("exit", "a") +
                              process("fork", "b") + open + open)
                        .processes) == Rows{"b (7) 2 0 0 2", "a (7) 1 0 0 1"});
}

TEST_CASE(
    "What is too much to be kept apart is listed as others, and nothing is missing in the sums") {
  constexpr std::uint64_t MANY = 5000, APART = 4096;
  std::string lines;
  for (std::uint64_t i = 1; i <= MANY; i++) {
    std::string n = std::to_string(i);
    lines += R"({"type":"kernel","op":"ioctl","name":"c)" + n + R"(","ts":1,"duration_us":1.000,)" +
             R"("pid":)" + n + R"(,"tid":1,"ret":0,"call":)" + n + R"(,"group":"g)" + n + "\"}\n" +
             R"({"type":"kernel","op":"poll","name":"poll","ts":1,"duration_us":1.000,"pid":)" + n +
             R"(,"tid":1,"ret":0,"device_file":"d)" + n + "\"}\n" + R"({"id":)" + n +
             R"(,"type":"init","name":"f)" + n + R"(","ts":1,"pid":1,"tid":1,"ret":0})" + "\n";
  }
  Ioctls::Answer answer = answer_of(lines);
  auto sum = [](const std::vector<Ioctls::Figures>& all) {
    Ioctls::Figures together;
    for (const auto& of : all) together.add(of);
    return together;
  };
  CHECK(sum(answer.operations).count == 2 * MANY);
  for (const auto* list :
       {&answer.groups, &answer.commands, &answer.calls, &answer.devices, &answer.outside}) {
    auto together = sum(*list);
    CHECK(together.count == MANY);
    CHECK(together.durations.count() == MANY);
    CHECK(list->size() <= APART + 1);
    CHECK(list->front().name == "(others)");
  }
  CHECK(sum(answer.processes).count == 2 * MANY);
  CHECK(sum(answer.calls).of_calls == MANY);
  CHECK(answer.not_kept_apart.kinds == 2 * MANY - APART);
  CHECK(answer.not_kept_apart.processes == 2 * (MANY - APART));
  CHECK(answer.not_kept_apart.functions == MANY - APART);
  Ioctls::Answer without_lists;  // as JSON they are long
  without_lists.not_kept_apart = answer.not_kept_apart;
  CHECK(ioctls_json(without_lists)["not_kept_apart"]["of_functions"] == MANY - APART);
  CHECK_THAT(page_text([&](Page& page) { add_ioctls(page, answer, IoctlsBy::call, 5); }),
             ContainsSubstring("5,904 operations of more kinds"));
}

TEST_CASE("Calls whose lines are missing do not take the place of those that come") {
  constexpr int MANY = 20'000;
  std::string lines;
  for (int i = 1; i <= MANY; i++)
    lines += operation("ioctl", "a", 1, R"("ret":0,"call":)" + std::to_string(i));
  Ioctls::Answer answer = answer_of(lines + call(MANY, "cuInit", 9));
  CHECK(figure_rows(answer.calls) ==
        Rows{"(calls without a line) 19999 19999 0 19999", "cuInit 1 1 0 1"});
}

TEST_CASE("A trace without the driver says how to have it") {
  auto page_of = [](const std::string& header) {
    Ioctls::Answer answer = answer_of(call(1, "cuInit", 5), header);
    CHECK(ioctls_json(answer)["operations"].empty());
    return page_text([&](Page& page) { add_ioctls(page, answer, IoctlsBy::everything, 9); });
  };
  CHECK_THAT(page_of(R"(,"driver_traced":false)"), ContainsSubstring("Record with --kernel"));
  CHECK_THAT(page_of(TRACED), ContainsSubstring("No requests were made"));
}

TEST_CASE("An interrupt is of no process, whatever its line says") {
  Ioctls::Answer answer =
      answer_of(R"({"type":"kernel","op":"interrupt","name":"isr","ts":1,"pid":7,"tid":7,"call":3})"
                "\n" +
                call(3, "cuInit", 1));
  CHECK(figure_rows(answer.operations) == Rows{"interrupt: isr 1 0 0 0"});
  CHECK(answer.processes.empty());
  CHECK(answer.calls.empty());
}
