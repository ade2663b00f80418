// Checks the page at the end of a run, byte for byte.
#include <catch2/catch_test_macros.hpp>

#include "golden.hpp"
#include "sink/run_summary.hpp"

using namespace cudabpf;

namespace {

RunEnd after_calls(const TraceWritten& written) {
  RunEnd end;
  end.totals.counts.calls = 1;
  end.written = written;
  return end;
}

std::string below_heading(const RunEnd& end) {
  std::string text = render_summary(end, Terminal{});
  return text.substr(text.find('\n') + 1);
}

}  // namespace

TEST_CASE("The end of a run, byte for byte") {
  RunEnd end =
      after_calls({"traces/trace_20261121T101500.jsonl", 1, 230'000, 117'440'512, 0, true});
  end.totals.duration_ns = 12'431'000'000;
  end.totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 1203;
  end.totals.losses[static_cast<std::size_t>(Loss::ring_name)] = 4;
  end.totals.counts.read_faults = 2;
  end.answer = "9,219 calls of 1 process in 12.4 s\n  ./decode\n\nHost-bound: …\n";
  end.compresses = 39.2;
  std::string text = render_summary(end, Terminal{});
  check_golden("summary.txt", text);
  // No line is wider than the terminal, in characters.
  std::size_t width = 0;
  for (char c : text) {
    if (c == '\n') {
      CHECK(width <= 80);
      width = 0;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      width++;
    }
  }
}

TEST_CASE("A run without calls says so, and why") {
  const std::string NOTHING = "0 calls of 0 processes in 0 ns\n";
  RunEnd end;
  CHECK(render_summary(end, Terminal{}) == NOTHING + "  No libcuda was found or loaded.\n");
  end.libraries = 1;
  end.written = TraceWritten{"t.jsonl", 1, 2, 100, 0, true};
  // There is no question that such a trace answers.
  CHECK(render_summary(end, Terminal{}) ==
        NOTHING +
            "  No traced process called a traced function of libcuda.\n"
            "\ntrace\n  t.jsonl  100 B, 2 lines\n");
  end.libraries = 0;
  end.inside = true;
  CHECK(render_summary(end, Terminal{})
            .starts_with(NOTHING + "  Nothing was recorded: no process called cuInit, where "));
  end.totals.losses[static_cast<std::size_t>(Loss::process_unrecorded)] = 1;
  CHECK(render_summary(end, Terminal{})
            .starts_with(NOTHING + "  No process that called cuInit could be recorded.\n\nlost\n"));
}

TEST_CASE("The end of a run says where the trace is and what to ask it") {
  CHECK(below_heading(after_calls({"-", 1, 2, 100, 0, true})) == "");
  CHECK(below_heading(after_calls({"/dev/null", 1, 2, 100, 0, true})) == "");
  CHECK(below_heading(after_calls({"-", 1, 2, 100, 1300, false, true})) ==
        "\nlost\n  1,300 events that came after the trace's reader had gone\n");
  CHECK(below_heading(after_calls({"t x.jsonl.zst", 3, 2, 100, 0, true})) ==
        "\ntrace\n  t x.jsonl.zst  the last of 3 files; in all: 100 B, 2 lines\n"
        "\nnext\n  cudabpf schema    what every field means\n");
  CHECK(below_heading(after_calls({"t x.jsonl", 1, 2, 100, 0, true})) ==
        "\ntrace\n  t x.jsonl  100 B, 2 lines\n"
        "\nnext\n  cudabpf summary 't x.jsonl'\n  cudabpf report 't x.jsonl'\n"
        "  cudabpf schema    what every field means\n");
  std::string failed = below_heading(after_calls({"t.jsonl", 1, 1, 100, 7, false}));
  CHECK(failed.starts_with("\nlost\n  7 output_failed\n    Events could not be written."));
  CHECK(failed.find("  t.jsonl  100 B, 1 line; its end could not be written\n") !=
        std::string::npos);
}

TEST_CASE("Headings are bold on a terminal that takes colour") {
  RunEnd end;
  end.totals.counts.calls = 2;
  end.totals.counts.unfinished = 1;
  end.totals.processes = 1;
  CHECK(render_summary(end, Terminal{true, true, 200}) ==
        "\033[1m2 calls of 1 process in 0 ns; 1 did not return\033[0m\n");
}
