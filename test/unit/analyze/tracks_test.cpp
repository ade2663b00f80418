#include "analyze/export/tracks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "support/drawn_tracks.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// A call of process 7, with more fields.
std::string call(int id, const std::string& name, const std::string& more, int tid = 7,
                 int pid = 7) {
  return fmt::format(R"({{"id":{},"type":"init","name":"{}","pid":{},"tid":{},{}}})", id, name, pid,
                     tid, more) +
         "\n";
}
std::string inside(int parent, int from, int to) {
  return fmt::format(R"({},"parent":{})", took(from, to), parent);
}
std::string launch(int id, long ts, int pid = 7) {
  return fmt::format(
             R"({{"id":{},"type":"kernel","op":"launch","name":"l","ts":{},"duration_us":0.000,)"
             R"("pid":{},"tid":{}}})",
             id, ts, pid, pid) +
         "\n";
}

}  // namespace

TEST_CASE("Calls follow the call that they were made inside of, whenever they began and ended") {
  SECTION("all at the same time") {
    DrawnTracks drawn = draw(call(3, "c", inside(2, 5, 5)) + call(2, "b", inside(1, 5, 5)) +
                             call(4, "d", inside(1, 5, 5)) + call(1, "a", took(5, 5)));
    CHECK(drawn.events == Lines{"2 begin a at 5", "2 begin b at 5", "2 begin c at 5",
                                "2 end c at 5", "2 end b at 5", "2 begin d at 5", "2 end d at 5",
                                "2 end a at 5"});
  }
  SECTION("another thread between") {
    DrawnTracks drawn = draw(call(2, "b", inside(1, 5, 8)) + call(9, "x", took(1, 8), 8) +
                             call(1, "a", took(4, 9)));
    CHECK(drawn.events == Lines{"3 begin x at 1", "3 end x at 8", "2 begin a at 4",
                                "2 begin b at 5", "2 end b at 8", "2 end a at 9"});
    CHECK(drawn.tracks == Lines{"1<0 7/0 as 7 ", "2<1 7/7 as 7 ", "3<1 7/8 as 7 "});
  }
  SECTION("one that never comes") {
    DrawnTracks drawn = draw(call(3, "c", inside(2, 5, 6)) + call(4, "d", took(7, 8)) +
                             call(6, "e", inside(5, 9, 9)));
    CHECK(drawn.events == Lines{"2 begin c at 5", "2 end c at 6", "2 begin d at 7", "2 end d at 8",
                                "2 begin e at 9", "2 end e at 9"});
  }
}

TEST_CASE("More nested calls than are held") {
  std::string text;
  constexpr int MANY = 20'000;
  for (int id = 2; id < MANY; id++) text += call(id, "inner", inside(1, 5, 6));
  DrawnTracks drawn = draw(text + call(1, "outer", took(5, 6)));
  CHECK(drawn.events.size() == 2 * (MANY - 1));
}

TEST_CASE("Calls may nest as deep as a trace says") {
  std::string text;
  constexpr int DEEP = 16'000;
  for (int id = DEEP; id > 1; id--) text += call(id, "inner", inside(id - 1, 5, 6));
  DrawnTracks drawn = draw(text + call(1, "outer", took(5, 6)));
  REQUIRE(drawn.events.size() == 2 * DEEP);
  CHECK(drawn.events[0] == "2 begin outer at 5");
  CHECK(drawn.events[DEEP - 1] == "2 begin inner at 5");
  CHECK(drawn.events[DEEP] == "2 end inner at 6");
  CHECK(drawn.events.back() == "2 end outer at 6");
}

TEST_CASE("Tracks that are too many begin anew, and that is reported") {
  std::string text;
  constexpr int MANY = 66'000;
  for (int tid = 1; tid <= MANY; tid++) text += call(tid, "c", took(5, 6), tid);
  DrawnTracks drawn = draw(text + call(MANY + 1, "c", took(7, 8), 1));
  // Each call's beginning and end, and what is reported.
  CHECK(drawn.events.size() == 2 * (MANY + 1) + 1);
  CHECK(std::count(drawn.events.begin(), drawn.events.end(),
                   "what is missing: more tracks than are kept apart at 5, so all of them begin "
                   "anew, counters from 0") == 1);
  // The process and a thread come twice.
  CHECK(drawn.tracks.size() == MANY + 1 + 2 + 1);
}

TEST_CASE("Arrows that are too many at once are counted") {
  std::string text;
  constexpr int KEPT = 1 << 16, DONE = 100, TOO_MANY = 50;
  auto operation = [&](int tid, int call) {
    text += R"({"type":"kernel","op":"ioctl","name":"i","ts":5,"pid":7,"tid":)" +
            std::to_string(tid) + R"(,"call":)" + std::to_string(call) + "}\n";
  };
  // Operations whose call has come give their space back: none of the others is one more too many.
  for (int i = 1; i <= DONE; i++) {
    operation(99, i);
    text += call(i, "c", took(5, 6), 99);
  }
  for (int i = 1; i <= KEPT + TOO_MANY; i++) operation(i % 50, DONE + i);
  TraceFacts facts;
  facts.last_ts = 9;
  CHECK(draw(text, facts).events.back() ==
        fmt::format("what is missing: arrows that were too many at once at 9, count {}", TOO_MANY));
}

TEST_CASE("Calls without a duration are points, or have no end") {
  DrawnTracks drawn =
      draw(call(1, "entry", R"("ts":1)") + call(2, "lost", R"("ts":2,"return_lost":true)") +
           call(3, "hang", R"("ts":3,"unfinished":true)") + call(4, "next", took(4, 5)));
  CHECK(drawn.events == Lines{"2 point entry at 1", "2 point lost at 2", "2 endless hang at 3",
                              "3 begin next at 4", "3 end next at 5"});
  CHECK(drawn.tracks[2] == "3<1 7/7 as 7 ");  // what follows is not inside it
}

TEST_CASE("Arrows lead from a call to each of its own operations") {
  auto ioctl = [](const std::string& more) {
    return R"({"type":"kernel","op":"ioctl","name":"i","pid":7,"tid":7,)" + more + "}\n";
  };
  DrawnTracks drawn = draw(ioctl(took(2, 3) + R"(,"call":1)") + ioctl(took(4, 5) + R"(,"call":2)") +
                           call(2, "b", inside(1, 4, 6)) + ioctl(took(7, 8) + R"(,"call":1)") +
                           call(1, "a", took(1, 9)) + ioctl(took(10, 11)));
  CHECK(drawn.events == Lines{"3 begin i at 2 2>1", "3 end i at 3", "3 begin i at 4 2>2",
                              "3 end i at 5", "3 begin i at 7 2>3", "3 end i at 8",
                              "2 begin a at 1 >3 >1", "2 begin b at 4 >2", "2 end b at 6",
                              "2 end a at 9", "3 begin i at 10", "3 end i at 11"});
  CHECK(drawn.tracks[2] == "3<2 7/0 as 7 driver, thread 7");

  // One whose line was lost.
  drawn = draw(ioctl(took(2, 3) + R"(,"call":1)") + ioctl(took(4, 5) + R"(,"call":2)") +
               call(1, "a", took(1, 9)));
  CHECK(drawn.events[4] == "2 begin a at 1 >1");
}

TEST_CASE("A pid that comes again is another process; an exec is another program") {
  std::string exec = R"({"type":"process","op":"exec","ts":9,"pid":7,"comm":"two"})";
  DrawnTracks drawn = draw(R"({"type":"process","op":"start","ts":0,"pid":7,"comm":"one"})"
                           "\n" +
                           call(1, "a", took(1, 2)) + exec + "\n" + call(2, "b", took(10, 11)));
  CHECK(drawn.tracks == Lines{"1<0 7/0 as 7 one", "2<1 7/7 as 7 one", "3<0 7/0 as 10000007 two",
                              "4<3 7/7 as 10000007 two"});
}

TEST_CASE("Launches a second, of each process") {
  DrawnTracks drawn = draw(launch(1, 1'000'000) + launch(2, 9'999'999) + launch(3, 10'000'000) +
                           launch(4, 5'000'000, 8) + launch(5, 40'000'000));
  Lines counted;
  for (const auto& event : drawn.events)
    if (event.starts_with("launches")) counted.push_back(event);
  std::sort(counted.begin(), counted.end());  // those of two processes come in no particular order
  CHECK(counted == Lines{"launches/s is 0 at 10000000", "launches/s is 0 at 20000000",
                         "launches/s is 0 at 50000000", "launches/s is 100 at 0",
                         "launches/s is 100 at 10000000", "launches/s is 100 at 40000000",
                         "launches/s is 200 at 0"});
}

TEST_CASE("Samples of GPUs are counters of the machine, rounded; the energy counter is none") {
  DrawnTracks drawn = draw(
      R"({"type":"gpu","op":"sample","ts":5,"gpu":3,"sm_active":96.4,"power_w":704.6,"energy_j":9.5})"
      "\n"
      R"({"type":"gpu","op":"sample","ts":9,"gpu":3,"power_w":-1,"memory_used":1024})"
      "\n");
  CHECK(drawn.events == Lines{"GPU 3: SM activity, % is 96 at 5", "GPU 3: power, W is 705 at 5",
                              "GPU 3: memory used is 1024 at 9"});
  CHECK(drawn.tracks == Lines{"1<0 0/0 as 0 GPU 3: SM activity, %", "2<0 0/0 as 0 GPU 3: power, W",
                              "3<0 0/0 as 0 GPU 3: memory used"});
}

namespace {

std::string block(const char* op, int ts, int ptr, const std::string& more = "", int pid = 7) {
  return fmt::format(R"({{"id":{},"type":"block","op":"{}","name":"pytorch","library":"c10",)"
                     R"("layer":2,"ts":{},"pid":{},"tid":{},"ptr":"{:#x}"{}}})",
                     ts, op, ts, pid, pid, ptr, more) +
         "\n";
}
std::string of(int size, int gpu) { return fmt::format(R"(,"size":{},"device":{})", size, gpu); }
std::string exit_of(int pid, int ts) {
  return fmt::format(R"({{"type":"process","op":"exit","ts":{},"pid":{}}})", ts, pid) + "\n";
}

}  // namespace

TEST_CASE("PyTorch's blocks are a counter of each GPU of a process, which falls to zero with it") {
  std::string text = block("alloc", 5, 0x100, of(512, 0)) + block("alloc", 6, 0x200, of(64, 1)) +
                     block("alloc", 7, 0x300, of(8, 0)) +
                     block("alloc", 7, 0x400, of(4, 0), 8) +  // of another process
                     block("free", 8, 0x900) + block("free", 9, 0x100);
  CHECK(draw(text + exit_of(7, 11)).events ==
        Lines{"PyTorch's blocks, GPU 0 is 512 at 5", "PyTorch's blocks, GPU 0 is 520 at 7",
              "PyTorch's blocks, GPU 0 is 8 at 9", "PyTorch's blocks, GPU 1 is 64 at 6",
              "PyTorch's blocks, GPU 0 is 0 at 11", "PyTorch's blocks, GPU 1 is 0 at 11",
              "PyTorch's blocks, GPU 0 is 4 at 7"});
  CHECK(draw(text).tracks == Lines{"1<0 7/0 as 7 ", "2<1 7/0 as 7 PyTorch's blocks, GPU 0",
                                   "3<1 7/0 as 7 PyTorch's blocks, GPU 1", "4<0 8/0 as 8 ",
                                   "5<4 8/0 as 8 PyTorch's blocks, GPU 0"});
  // Another program in the process; what it has begins from nothing.
  CHECK(draw(text +
             R"({"type":"process","op":"exec","ts":12,"pid":7,"comm":"b"})"
             "\n" +
             block("alloc", 13, 0x100, of(1, 0)))
            .events.back() == "PyTorch's blocks, GPU 0 is 4 at 7");
}

TEST_CASE("Blocks from before a part are there from its beginning") {
  std::string text = block("alloc", 5, 0x100, of(512, 0)) + block("alloc", 6, 0x200, of(64, 1)) +
                     exit_of(8, 7) + block("free", 20, 0x200) + block("free", 30, 0x100);
  CHECK(draw(text, {}, {.from = 10, .to = 25}).events ==
        Lines{"PyTorch's blocks, GPU 1 is 64 at 10", "PyTorch's blocks, GPU 0 is 512 at 10",
              "PyTorch's blocks, GPU 1 is 0 at 20"});
}

TEST_CASE("Having a GPU is a counter of each process, until another has it") {
  DrawnTracks drawn = draw(
      R"({"type":"gpu","op":"sample","ts":5,"gpu":3,"residents":[{"pid":7,"ms":0.75},{"ms":0.1}],)"
      R"("resident_from":0,"resident_to":1000000,"resident_unknown_ms":0})"
      "\n"
      R"({"type":"gpu","op":"sample","ts":9,"gpu":3,"residents":[{"pid":8,"ms":1}],)"
      R"("resident_from":1000000,"resident_to":2000000,"resident_unknown_ms":0})"
      "\n"
      R"({"type":"gpu","op":"sample","ts":12,"gpu":3,"residents":[],)"
      R"("resident_from":2000000,"resident_to":3000000,"resident_unknown_ms":1})"
      "\n");
  CHECK(drawn.events == Lines{"GPU 3: had by a process without a pid, % is 10 at 5",
                              "GPU 3: had by process 7, % is 75 at 5",
                              "GPU 3: had by a process without a pid, % is 0 at 9",
                              "GPU 3: had by process 7, % is 0 at 9",
                              "GPU 3: had by process 8, % is 100 at 9",
                              "GPU 3: had by process 8, % is 0 at 12"});
}

TEST_CASE("What failed was neither launched nor put into a stream") {
  DrawnTracks drawn =
      draw(R"({"id":1,"type":"kernel","op":"launch","name":"l","ts":1,"duration_us":1.000,)"
           R"("pid":7,"tid":7,"ret":1,"stream":"0x0","async":true})");
  CHECK(drawn.events == Lines{"2 begin l at 1", "2 end l at 1001"});
}

TEST_CASE("Streams are a process's own, and the default ones of threads a thread's") {
  auto put = [](int tid, int stream) {
    return fmt::format(R"({{"id":1,"type":"event","name":"e","ts":1,"pid":7,"tid":{},)"
                       R"("stream":"0x{}","async":true}})",
                       tid, stream) +
           "\n";
  };
  DrawnTracks drawn = draw(put(7, 5) + put(8, 5) + put(7, 2) + put(8, 2));
  Lines streams;
  for (const auto& track : drawn.tracks)
    if (track.find("stream") != std::string::npos) streams.push_back(track);
  CHECK(streams == Lines{"3<1 7/0 as 7 stream 0x5: when enqueued, not when run",
                         "5<1 7/0 as 7 stream 0x2 of thread 7: when enqueued, not when run",
                         "6<1 7/0 as 7 stream 0x2 of thread 8: when enqueued, not when run"});
}

TEST_CASE("Arrows lead from a call to what it has put into a stream") {
  auto put = [](int id, const std::string& when) {
    return call(id, "l", when + R"(,"stream":"0x5","async":true)");
  };
  DrawnTracks drawn = draw(put(1, took(1, 3)) + put(2, took(4, 5)) + put(3, R"("ts":6)") +
                           put(4, inside(5, 7, 8)) + call(5, "outer", took(7, 9)));
  CHECK(drawn.events == Lines{"2 begin l at 1 >>1", "2 end l at 3", "3 enqueued at 1 >>1",
                              "2 begin l at 4 >>2", "2 end l at 5", "3 enqueued at 4 >>2",
                              "2 point l at 6", "3 enqueued at 6", "2 begin outer at 7",
                              "2 begin l at 7", "2 end l at 8", "2 end outer at 9"});
}

TEST_CASE("Phases and iterations are on tracks of the process that they are of") {
  std::string text;
  int id = 0;
  auto kernel = [&](const char* name, int ts) {
    text +=
        fmt::format(R"({{"id":{},"type":"kernel","op":"launch","name":"l","kernel":"{}","ts":{},)"
                    R"("duration_us":0.001,"pid":7,"tid":7}})",
                    ++id, name, ts) +
        "\n";
  };
  for (int i = 0; i < 4; i++) {
    kernel("a", 100 + i * 10);
    kernel("b", 102 + i * 10);
    text += fmt::format(R"({{"id":{},"type":"sync","op":"ctx","name":"w","ts":{},)"
                        R"("duration_us":0.002,"pid":7,"tid":7}})",
                        ++id, 104 + i * 10) +
            "\n";
  }
  std::string exit = R"({"type":"process","op":"exit","ts":200,"pid":7})";
  DrawnTracks drawn = draw(text + exit);
  CHECK(drawn.execution_tracks ==
        Lines{"4<1 7/0 as 7 phases of thread 7", "5<1 7/0 as 7 iterations of thread 7"});
  CHECK(drawn.spans == Lines{"4 before the first call from 0 to 100",
                             "4 inference from 100 to 136, note 4 iterations, p50 10 ns",
                             "4 clean-up from 136 to 200",
                             "5 iteration 1 from 100 to 110, launches 2",
                             "5 iteration 2 from 110 to 120, launches 2",
                             "5 iteration 3 from 120 to 130, launches 2",
                             "5 iteration 4 from 130 to 136, launches 2"});
}

TEST_CASE("Memory that goes away at once is reported once") {
  auto allocated = [](int id, int size) {
    return fmt::format(R"({{"id":{},"type":"memory","op":"alloc","name":"a","ts":{},)"
                       R"("duration_us":0.000,"pid":7,"tid":7,"ret":0,"size":{},"ptr":"0x{}",)"
                       R"("kind":"device"}})",
                       id, id * 10, size, id) +
           "\n";
  };
  DrawnTracks drawn = draw(allocated(1, 100) + allocated(2, 50) +
                           R"({"type":"process","op":"exit","ts":90,"pid":7})");
  Lines held;
  for (const auto& event : drawn.events)
    if (event.starts_with("memory")) held.push_back(event);
  CHECK(held == Lines{"memory held: device is 100 at 10", "memory held: device is 150 at 20",
                      "memory held: device is 0 at 90"});
}

TEST_CASE("What is missing is in the picture") {
  TraceFacts facts;
  facts.cut_off = {"t: it has no end"};
  facts.last_ts = 99;
  DrawnTracks drawn =
      draw(R"({"type":"trace","clocks":{"boottime_ns":5}})"
           "\n"
           R"({"type":"lost","ts":4,"reason":"ring_full_name","severity":"degraded","count":3})"
           "\n"
           R"({"type":"lost","ts":5,"reason":"late_library","severity":"lost","count":null})"
           "\n"
           R"({"type":"error","op":"xid","name":"Xid 13","ts":6,"xid":13,"bus_id":"0:1"})",
           facts);
  CHECK(drawn.events ==
        Lines{"boottime 5", "what is missing: degraded: ring_full_name at 4, count 3",
              "what is missing: lost: late_library at 5, count not known",
              "GPU errors: Xid 13 at 6, meaning , bus_id 0:1, process ",
              "what is missing: the trace was cut off at 99, why t: it has no end"});
}
