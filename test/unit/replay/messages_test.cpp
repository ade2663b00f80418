#include "replay/messages.hpp"

#include <sys/socket.h>

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using namespace cudabpf::replay;

TEST_CASE("Requests and answers are read as they were written") {
  Request request{Task::walk, "folder", {1, 2}, {3}, 4};
  auto read = request_in(line_of(request));
  REQUIRE(read);
  CHECK((read->task == Task::walk && read->folder == "folder" && read->runs == 4));
  CHECK(read->left_out == request.left_out);
  request.candidate = "other.cubin";
  request.launches = {5, 3};
  request.memory = MemoryTaken::touching;
  read = request_in(line_of(request));
  REQUIRE(read);
  CHECK((read->candidate == "other.cubin" && read->launches[1] == 3 &&
         read->memory == request.memory));
  Answer answer;
  answer.error = "no memory";
  answer.step = 7;
  answer.gpu = Gpu{"H200", "13.0", 9, 0, 5};
  answer.moved = {{{0x7f0000000000}, 4096}};
  answer.comparison = Comparison{};
  answer.comparison->memory.different = 1;
  answer.timing = Timing{{1, 2}, {{0, 3, 4, 5, 6}}};
  answer.extracted = Extracted{{{7, {{8, {0x10}, {{0x10}, 4}}}, 5, 6, {{{0x20}, 8}}}}, 1, 4096};
  answer.poisoned = {{{{{0x10}, 4}}, 3}};
  answer.attempted.resize(1);
  answer.attempted[0].errors[2].absolute = ~std::uint64_t{0};
  auto again = answer_in(line_of(answer));
  REQUIRE(again);
  CHECK(line_of(*again) == line_of(answer));
  CHECK(again->comparison->is_different());
}

TEST_CASE("What is no answer is an error") {
  for (const char* line : {"", "{}", "[]", "{\"moved\":7}", "nonsense"})
    CHECK_FALSE(answer_in(line));
  CHECK_FALSE(request_in(R"({"task":"dance","folder":"","left_out":[],"left_steps":[],"runs":0})"));
}

TEST_CASE("Lines come whole, until the other end is closed") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Lines lines{Fd(ends[0])};
  {
    Lines other{Fd(ends[1])};
    REQUIRE(other.write("one\ntwo\nhalf"));
  }
  CHECK(**lines.read() == "one");
  CHECK(*lines.take() == "two");
  CHECK_FALSE(lines.take());
  auto end = lines.read();
  REQUIRE(end);
  CHECK_FALSE(*end);
}
