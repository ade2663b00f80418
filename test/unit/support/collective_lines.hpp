// Lines of a trace about collectives, as several ranks make them. Times are microseconds.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

// What a collective's line has besides.
struct SampleCollective {
  std::string op = "all_reduce";
  std::uint64_t size = 1 << 20;
  std::string more;  // ,"captured":true
  std::string stream = "0x0";
  int ret = 0;
};

class SampleRanks {
 public:
  std::string text = R"({"type":"gpu","op":"times","ts":0,"pid":1,"graphs":"nodes"})"
                     "\n";
  int ids = 0;

  // A communicator's number is that of its process, unless `pid` says otherwise.
  void communicator(int number, int rank, int ranks, const std::string& identity = "0xabc",
                    const std::string& more = "", int pid = 0) {
    line(
        R"({{"type":"collective","op":"comm","ts":1,"pid":{},"communicator":{},"identity":"{}","rank":{},"ranks":{}{}}})",
        pid ? pid : number, number, identity, rank, ranks, more);
  }
  // Enters at this time, and launches nothing. Returns its id.
  int call(int number, int seq, std::uint64_t at, const SampleCollective& of = {}) {
    int id = ++ids;
    call_line(id, number, seq, at, of);
    return id;
  }
  // The same, with a kernel that begins `begin` and takes `time`.
  int collective(int number, int seq, std::uint64_t at, std::uint64_t begin, std::uint64_t time,
                 const SampleCollective& of = {}) {
    int id = ++ids;
    int launched = launch(number, at, fmt::format(R"(,"within":{})", id), of.stream);
    call_line(id, number, seq, at, of);
    kernel(number, launched, begin, time, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", of.stream);
    return id;
  }
  // A launch of a kernel. Returns its id.
  int launch(int pid, std::uint64_t at, const std::string& more = "",
             const std::string& stream = "0x0") {
    line(
        R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernelEx","ts":{},"duration_us":1.000,"pid":{},"tid":{},"ret":0,"stream":"{}","async":true{}}})",
        ++ids, at * 1000, pid, pid, stream, more);
    return ids;
  }
  // What a GPU did for that call.
  void kernel(int pid, int call, std::uint64_t begin, std::uint64_t time, const std::string& name,
              const std::string& stream = "0x0", const std::string& more = R"(,"device":0)") {
    line(
        R"({{"type":"gpu","op":"kernel","ts":{},"duration_us":{}.000,"pid":{},"call":{},"stream":"{}","kernel":"{}"{}}})",
        begin * 1000, time, pid, call, stream, name, more);
  }
  // Its launch included.
  void compute(int pid, std::uint64_t begin, std::uint64_t time) {
    kernel(pid, launch(pid, begin), begin, time, "gemm", "0x7");
  }
  // Returns the id of ncclGroupEnd, which takes 10 µs.
  int group_end(int pid, int group, std::uint64_t at) {
    int id = ++ids;
    end_group(id, pid, group, at);
    return id;
  }
  void end_group(int id, int pid, int group, std::uint64_t at) {
    line(
        R"({{"id":{},"type":"group","op":"end","name":"ncclGroupEnd","library":"nccl","layer":1,"ts":{},"duration_us":10.000,"pid":{},"tid":{},"ret":0,"call_group":{}}})",
        id, at * 1000, pid, pid, group);
  }

  template <typename... Values>
  void line(fmt::format_string<Values...> form, Values&&... values) {
    text += fmt::format(form, std::forward<Values>(values)...) + "\n";
  }

 private:
  void call_line(int id, int number, int seq, std::uint64_t at, const SampleCollective& of) {
    line(
        R"({{"id":{},"type":"collective","op":"{}","name":"ncclX","library":"nccl","layer":1,"ts":{},"duration_us":5.000,"pid":{},"tid":{},"ret":{},"size":{},"stream":"{}","communicator":{},"seq":{},"count":{},"datatype":"float32"{}}})",
        id, of.op, at * 1000, number, number, of.ret, of.size, of.stream, number, seq, of.size / 4,
        of.more);
  }
};
