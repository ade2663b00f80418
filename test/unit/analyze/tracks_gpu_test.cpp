// The tracks of GPUs, where a trace has what they did.
#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/drawn_tracks.hpp"
#include "support/gpu_operation_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

std::string copy_call(int id, int from, int to, int pid = 7) {
  return fmt::format(R"({{"id":{},"type":"transfer","op":"HtoD","name":"c","pid":{},"tid":{},)"
                     R"("stream":"0x5","async":true,{}}})",
                     id, pid, pid, took(from, to)) +
         "\n";
}
// `rest`: "call":1,…
std::string copied(std::uint64_t ts, const std::string& duration_us, const std::string& rest,
                   int pid = 7) {
  return fmt::format(R"({{"type":"gpu","op":"copy","ts":{},{}"pid":{},"size":4096,)"
                     R"("direction":"HtoD",{}}})",
                     ts, duration_us.empty() ? "" : "\"duration_us\":" + duration_us + ",", pid,
                     rest) +
         "\n";
}
std::string in_queue(const std::string& rest = {}, int queue = 3) {
  return fmt::format(R"("stream":"0x5","queue":{},"device":0{})", queue, rest);
}
Lines only(const Lines& lines, const std::string& text) {
  Lines some;
  for (const std::string& line : lines)
    if (line.find(text) != std::string::npos) some.push_back(line);
  return some;
}

}  // namespace

TEST_CASE("What a GPU did is on a track of its stream, with an arrow from its call") {
  DrawnTracks drawn =
      draw(MEASURED + copy_call(1, 10, 20) + copied(30, "0.030", in_queue(R"(,"call":1)")));
  CHECK(drawn.tracks == Lines{"1<0 7/0 as 7 ", "2<1 7/7 as 7 ", "3<1 7/0 as 7 GPU 0",
                              "4<3 7/0 as 7 stream 3 (0x5)"});
  // No mark says when it was enqueued, as it is known when it was done.
  CHECK(drawn.events == Lines{"boottime 0", "2 begin c at 10 issues 1", "2 end c at 20",
                              "4 begin copy HtoD 4.00 KiB at 30 issued by 1 after 20",
                              "4 end  at 60"});
}

TEST_CASE("The windows in which GPU times were recorded are on a track of their process") {
  DrawnTracks drawn =
      draw(MEASURED + R"({"type":"gpu","op":"window","ts":30,"duration_us":0.020,"pid":7})" + "\n" +
           R"({"type":"gpu","op":"window","ts":90,"duration_us":0.020,"pid":7})" + "\n");
  CHECK(drawn.tracks == Lines{"1<0 7/0 as 7 ", "2<1 7/0 as 7 GPU times recorded"});
  CHECK(only(drawn.spans, "recorded").size() == 2);
}

TEST_CASE("What overlaps in a stream is on another track, whatever the order of its lines") {
  DrawnTracks drawn =
      draw(MEASURED + copied(40, "0.010", in_queue()) + copied(20, "0.015", in_queue()) +
           copied(10, "0.011", in_queue()) + copied(30, "0.010", in_queue()) +
           copied(35, "0.000", in_queue()) + copied(7, "0.001", in_queue("", 4)));
  CHECK(only(drawn.events, "begin") ==
        Lines{"3 begin copy HtoD 4.00 KiB at 7", "4 begin copy HtoD 4.00 KiB at 10",
              "5 begin copy HtoD 4.00 KiB at 20", "4 begin copy HtoD 4.00 KiB at 30",
              "5 begin copy HtoD 4.00 KiB at 35", "4 begin copy HtoD 4.00 KiB at 40"});
  CHECK(only(drawn.tracks, "(0x5)") == Lines{"3<2 7/0 as 7 stream 4 (0x5)",
                                             "4<2 7/0 as 7 stream 3 (0x5)",
                                             "5<2 7/0 as 7 stream 3 (0x5), overlapping 1"});
}

TEST_CASE("More at once than a stream has tracks for is counted") {
  std::string text = MEASURED;
  for (int i = 0; i < 70; i++) text += copied(10, "1.000", in_queue());
  DrawnTracks drawn = draw(text);
  CHECK(only(drawn.tracks, "(0x5)").size() == 64);
  CHECK(only(drawn.events, "missing") ==
        Lines{"what is missing: what was done at once in more ways than is kept apart at 0, "
              "count 6"});
}

TEST_CASE("An arrow leads to the first node of a graph, and to nothing from a call not shown") {
  std::string nodes;
  for (int i = 0; i < 3; i++)
    nodes += copied(30 + 10 * static_cast<std::uint64_t>(i), "0.005",
                    in_queue(R"(,"call":1,"node":)" + std::to_string(i)));
  DrawnTracks drawn = draw(MEASURED + copy_call(1, 10, 20) + nodes +
                           copied(90, "0.001", in_queue(R"(,"call":77)")) +
                           copied(95, "0.001", in_queue(R"(,"unjoined":"late")")));
  CHECK(only(drawn.events, "4 begin") ==
        Lines{"4 begin copy HtoD 4.00 KiB at 30 issued by 1 after 20",
              "4 begin copy HtoD 4.00 KiB at 40 after 30",
              "4 begin copy HtoD 4.00 KiB at 50 after 40", "4 begin copy HtoD 4.00 KiB at 90",
              "4 begin copy HtoD 4.00 KiB at 95"});
}

TEST_CASE("A whole graph has the number that its call says") {
  DrawnTracks drawn =
      draw(MEASURED +
           R"({"id":4,"type":"graph","op":"launch","name":"g","ts":5,"duration_us":0.001,"pid":7,)"
           R"("tid":7,"ret":0,"stream":"0x5","graph":12,"nodes":3,"kernels":3})"
           "\n"
           R"({"type":"gpu","op":"graph","ts":9,"duration_us":0.010,"pid":7,"call":4,"queue":1})");
  CHECK(only(drawn.events, "after") == Lines{"4 begin graph 12 at 9 issued by 4 after 4"});
  CHECK(only(drawn.tracks, "GPU") == Lines{"3<1 7/0 as 7 GPU not known"});
}

TEST_CASE("What was done for a process that is gone is on its tracks") {
  const std::string exit = R"({"type":"process","op":"exit","ts":70,"pid":7})"
                           "\n";
  DrawnTracks drawn =
      draw(MEASURED + copy_call(1, 10, 20) + exit + copied(30, "0.001", in_queue(R"(,"call":1)")) +
           copy_call(2, 80, 81) + copied(90, "0.001", in_queue(R"(,"call":2)")));
  CHECK(drawn.tracks == Lines{"1<0 7/0 as 7 ", "2<1 7/7 as 7 ", "3<1 7/0 as 7 GPU 0",
                              "4<3 7/0 as 7 stream 3 (0x5)", "5<0 7/0 as 10000007 ",
                              "6<5 7/7 as 10000007 ", "7<5 7/0 as 10000007 GPU 0",
                              "8<7 7/0 as 10000007 stream 3 (0x5)"});
  CHECK(only(drawn.events, "issued") ==
        Lines{"4 begin copy HtoD 4.00 KiB at 30 issued by 1 after 20",
              "8 begin copy HtoD 4.00 KiB at 90 issued by 2 after 10"});
}

TEST_CASE("A process without reports of when its GPUs worked has marks in its streams") {
  DrawnTracks drawn = draw(MEASURED +
                           R"({"type":"gpu","op":"times","ts":1,"pid":8,"why":"no CUPTI"})"
                           "\n" +
                           copy_call(1, 10, 20, 8) + copy_call(2, 10, 20, 7));
  CHECK(only(drawn.events, "enqueued") == Lines{"3 enqueued at 10 >>1"});
}

TEST_CASE("GPU lines that make no sense are drawn as far as possible") {
  const std::string latest = "9223372036854775807";  // of a trace
  DrawnTracks drawn =
      draw(MEASURED + R"({"type":"gpu","op":"copy","ts":)" + latest +
           R"(,"duration_us":0.000,"pid":7})"
           "\n" +
           copied(5, "9000000000000000.000", R"("queue":1,"device":-4)") +
           copied(9, "", R"("queue":1,"device":-4)") + copied(9, "0.001", R"("queue":1,"call":0)") +
           R"({"type":"gpu","op":"kernel","ts":3,"call":5})");
  CHECK(only(drawn.tracks, "known").size() == 4);  // two GPUs, and a queue of each
  CHECK(only(drawn.events, "begin") == Lines{"6 begin copy HtoD 4.00 KiB at 5",
                                             "7 begin copy HtoD 4.00 KiB at 9",
                                             "8 begin copy at " + latest});
  CHECK(only(drawn.events, "6 end") == Lines{"6 end  at 9000000000000000005"});
  CHECK(only(drawn.events, "8 end") == Lines{"8 end  at " + latest});
  CHECK(only(drawn.events, "point") ==
        Lines{"4 point kernel at 3", "6 point copy HtoD 4.00 KiB at 9"});
}

TEST_CASE("Processes that come and go with GPU work do not take all memory") {
  std::string text = MEASURED;
  for (int pid = 1; pid <= 30'000; pid++) text += copied(5, "0.001", in_queue(), pid);
  DrawnTracks drawn = draw(text);
  CHECK(only(drawn.events, "begin copy").size() == 30'000);
  CHECK(only(drawn.events, "more tracks than are kept apart").size() == 1);
}

TEST_CASE("A communicator has a track with the calls of its collectives") {
  auto collective = [](int id, std::uint64_t ts, const std::string& more) {
    return fmt::format(
        R"({{"id":{},"type":"collective","op":"all_reduce","name":"ncclAllReduce","library":"nccl","layer":1,"ts":{},"duration_us":0.010,"pid":7,"tid":7,"ret":0,"size":4096{}}})"
        "\n",
        id, ts, more);
  };
  DrawnTracks drawn = draw(
      MEASURED + collective(1, 10, R"(,"communicator":4,"seq":1)") +
      R"({"type":"collective","op":"comm","ts":25,"pid":7,"communicator":5,"identity":"0x1","rank":1,"ranks":2})"
      "\n" +
      collective(2, 30, R"(,"communicator":5,"seq":1,"datatype":"float32","call_group":8)") +
      collective(3, 35, R"(,"communicator":5,"seq":2)") + collective(4, 50, ""));
  CHECK(only(drawn.tracks, "communicator") ==
        Lines{"3<1 7/0 as 7 communicator 4", "4<1 7/0 as 7 communicator 5, rank 1 of 2",
              "5<1 7/0 as 7 communicator 5, rank 1 of 2, overlapping 1"});
  CHECK(only(drawn.spans, "4.00 KiB") ==
        Lines{"3 all_reduce 4.00 KiB from 10 to 20, seq 1, call 1",
              "4 all_reduce 4.00 KiB from 30 to 40, seq 1, call 2, call_group 8, datatype float32",
              "5 all_reduce 4.00 KiB from 35 to 45, seq 2, call 3"});
}

TEST_CASE("Ranges are on tracks below their thread, one for each depth") {
  auto range = [](const char* op, const char* label, int number, int ts, int tid) {
    return fmt::format(
        R"({{"type":"range","op":"{}","label":"{}","ts":{},"duration_us":0.010,"pid":7,"tid":{},"range":{}}})"
        "\n",
        op, label, ts, tid, number);
  };
  DrawnTracks drawn =
      draw(MEASURED +
           R"({"type":"range","op":"name","label":"outer","ts":1,"range":1,"domain":"d"})"
           "\n"
           R"({"type":"range","op":"name","label":"inner","ts":1,"range":2,"in_range":1})"
           "\n" +
           range("push", "inner", 2, 12, 7) + range("push", "outer", 1, 10, 7) +
           range("push", "outer", 1, 30, 7) + range("push", "outer", 1, 30, 8) +
           range("start", "outer", 1, 40, 8) + range("start", "outer", 1, 45, 7));
  CHECK(only(drawn.tracks, "ranges").size() == 5);
  CHECK(only(drawn.spans, "outer").size() == 5);
  CHECK(only(drawn.spans, "inner").size() == 1);
  CHECK(only(drawn.tracks, "started ranges, overlapping 1").size() == 1);
  CHECK(only(drawn.tracks, "ranges, depth 2").size() == 1);
}
