#include "analyze/derived/processes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "support/trace_text.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

// What is known about each line's process, as text.
class ProcessTexts : public Analysis {
 public:
  explicit ProcessTexts(const Names& names) : names_(names) {}

  void line(const Line& line) override {
    std::string found;
    if (const analyze::Process* process = line.process) {
      found = "#" + std::to_string(process->number) + " " + std::string(names_.text(process->comm));
      if (process->container) found += " in " + std::string(names_.text(process->container));
      if (process->rank) found += " rank " + std::to_string(*process->rank);
      if (process->seen_begin) found += " seen";
      if (line.new_program) found += " anew";
    }
    for (const analyze::Process* gone : line.gone) found += " -" + std::to_string(gone->number);
    if (!found.empty()) lines.push_back(found);
  }

  std::vector<std::string> lines;

 private:
  const Names& names_;
};

using Lines = std::vector<std::string>;

Lines process_texts(const std::string& text, const std::string& header = "") {
  TraceText trace(text, header);
  ProcessTexts texts(trace.names());
  trace.show(texts);
  return texts.lines;
}

std::string process(const std::string& op, int pid, const std::string& comm = "sh",
                    const std::string& more = "") {
  return R"({"type":"process","op":")" + op + R"(","ts":5,"pid":)" + std::to_string(pid) +
         R"(,"comm":")" + comm + "\"" + more + "}\n";
}

std::string call_of(int pid) {
  return R"({"id":1,"type":"init","op":"init","name":"cuInit","ts":9,"duration_us":0.001,"pid":)" +
         std::to_string(pid) + R"(,"tid":1,"ret":0})" + "\n";
}

}  // namespace

TEST_CASE("Processes that `run` started were there before, if the trace begins later") {
  CHECK(process_texts(call_of(7), R"(,"mode":"run")") == Lines{"#1  seen"});
  CHECK(process_texts(process("start", 7) + call_of(7), R"(,"mode":"run","since":5)") ==
        Lines{"#1 sh", "#1 sh"});
  // The first file of a rotated trace says so, too.
  CHECK(process_texts(process("start", 7) + call_of(7), R"(,"mode":"run","since":0)") ==
        process_texts(process("start", 7) + call_of(7), R"(,"mode":"run")"));
}

TEST_CASE("A pid that is used again in a trace is another process") {
  CHECK(process_texts(process("start", 7) + call_of(7) + process("exit", 7) + process("fork", 7) +
                      call_of(7)) ==
        Lines{"#1 sh", "#1 sh", "#1 sh -1", "#2 sh seen", "#2 sh seen"});
  // Its exit was not seen.
  CHECK(process_texts(process("start", 7) + process("fork", 7, "new") +
                      process("start", 7, "newer")) ==
        Lines{"#1 sh", "#2 new seen -1", "#3 newer -2"});
}

TEST_CASE("A process is called what its last program is") {
  CHECK(process_texts(process("start", 7) + process("exec", 7, "python") + call_of(7)) ==
        Lines{"#1 sh", "#1 python seen anew", "#1 python seen"});
}

TEST_CASE("Processes that the trace does not announce, and those of `run`") {
  CHECK(process_texts(call_of(7) + call_of(8) + call_of(7)) == Lines{"#1 ", "#2 ", "#1 "});
  CHECK(process_texts(call_of(7), R"(,"mode":"run")") == Lines{"#1  seen"});
  CHECK(process_texts(process("exit", 9)) == Lines{"#1 sh -1"});
  CHECK(process_texts(call_of(7) + process("start", 7, "other")) == Lines{"#1 ", "#2 other -1"});
  CHECK(process_texts(call_of(7) + process("fork", 7, "other")) ==
        Lines{"#1 ", "#2 other seen -1"});
}

TEST_CASE("A process is in the container that its last line names") {
  std::string in = R"(,"container":{"runtime":"docker","id":"0123456789abcdef"})";
  CHECK(process_texts(process("start", 7, "a", in) + process("exit", 7, "a") +
                      process("fork", 7, "b")) ==
        Lines{"#1 a in docker 0123456789ab", "#1 a in docker 0123456789ab -1", "#2 b seen"});
}

TEST_CASE("A process has the rank that its launcher says, or that of its largest communicator") {
  auto communicator = [](int pid, int rank, int ranks) {
    return R"({"type":"collective","op":"comm","ts":3,"pid":)" + std::to_string(pid) +
           R"(,"communicator":1,"rank":)" + std::to_string(rank) + R"(,"ranks":)" +
           std::to_string(ranks) + "}\n";
  };
  auto start = [](int pid, const std::string& rank) {
    return R"({"type":"process","op":"start","ts":1,"pid":)" + std::to_string(pid) +
           R"(,"comm":"a")" + rank + "}\n";
  };
  CHECK(process_texts(start(1, R"(,"rank":{"LOCAL_RANK":1,"RANK":9})") + communicator(1, 0, 2) +
                      start(2, R"(,"rank":{"LOCAL_RANK":1})") + communicator(2, 1, 2) +
                      communicator(2, 5, 8) + communicator(2, 0, 4) + communicator(3, 0, 2)) ==
        Lines{"#1 a rank 9", "#1 a rank 9", "#2 a", "#2 a rank 1", "#2 a rank 5", "#2 a rank 5"});
}

TEST_CASE("Among too many processes those that were quiet for longest are put away") {
  LineParser parser;
  Processes processes(parser.names(), 4);
  auto follow = [&](std::uint32_t pid) {
    Line line;
    line.kind = LineKind::call;
    line.pid = pid;
    processes.follow(line);
    Lines gone;
    for (const analyze::Process* one : line.gone) gone.push_back(std::to_string(one->pid));
    return std::pair(line.process->number, gone);
  };
  for (std::uint32_t pid : {11, 12, 13, 14, 11}) CHECK(follow(pid).second.empty());
  CHECK(follow(15) == std::pair(std::uint64_t{5}, Lines{"12", "13"}));
  CHECK(processes.put_away() == 2);
  CHECK(follow(14) == std::pair(std::uint64_t{4}, Lines{}));
  CHECK(follow(12) == std::pair(std::uint64_t{6}, Lines{}));  // another by now
}
