#include "analyze/contexts.hpp"

#include <fmt/format.h>

#include "analyzing.hpp"

using namespace cudabpf::analyze;

TEST_CASE("Contexts are followed for as many threads as a process has, not for more") {
  constexpr int THREADS = 5000;
  std::string text;
  for (int tid = 1; tid <= THREADS; tid++)
    text += fmt::format(
        R"({{"id":{0},"type":"context","name":"cuCtxSetCurrent","ts":{0},"pid":7,"tid":{0},"ret":0,)"
        R"("args":{{"ctx":"{0:#x}"}}}})"
        "\n",
        tid);
  std::string exit = R"({"type":"process","op":"exit","ts":1,"pid":7})";

  LineParser parser;
  Contexts contexts(parser.names());
  each_line(parser, text, [&](const Line& line) { contexts.follow(line); });
  CHECK(contexts.current(7, 1) == 1);
  CHECK(contexts.current(7, 4096) == 4096);
  CHECK(contexts.current(7, THREADS) == 0);
  // What has ended makes room.
  each_line(parser, exit, [&](const Line& line) { contexts.process(line); });
  CHECK(contexts.current(7, 1) == 0);
  std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  each_line(parser, last, [&](const Line& line) { contexts.follow(line); });
  CHECK(contexts.current(7, THREADS) == THREADS);
}

TEST_CASE("Contexts are followed for as many processes as a machine has, not for more") {
  constexpr int PROCESSES = 70'000;
  std::string text;
  for (int pid = 1; pid <= PROCESSES; pid++)
    text += fmt::format(
        R"({{"id":{0},"type":"context","name":"cuCtxSetCurrent","ts":{0},"pid":{0},"tid":{0},)"
        R"("ret":0,"args":{{"ctx":"0x5"}}}})"
        "\n",
        pid);
  LineParser parser;
  Contexts contexts(parser.names());
  each_line(parser, text, [&](const Line& line) { contexts.follow(line); });
  CHECK(contexts.current(1, 1) == 5);
  CHECK(contexts.current(PROCESSES, PROCESSES) == 0);
}
