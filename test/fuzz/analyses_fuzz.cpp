// The contents of a trace come from any program, and any program may have written them: no lines
// may make an analysis or an export crash, hang or use too much memory, or get control characters
// onto the terminal.
//
// The input: a byte that chooses the analysis, one for the terminal's width, and a trace file. It
// reaches the analysis as in the program: through the reader, which refuses what is not a trace.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/collectives/collectives.hpp"
#include "analyze/collectives/ranks.hpp"
#include "analyze/diff/difference.hpp"
#include "analyze/energy/energy.hpp"
#include "analyze/export/alnair_logs.hpp"
#include "analyze/export/chrome_trace.hpp"
#include "analyze/export/csv_table.hpp"
#include "analyze/export/folded_stacks.hpp"
#include "analyze/export/perfetto_trace.hpp"
#include "analyze/export/tracks.hpp"
#include "analyze/gaps/gpus_at_work.hpp"
#include "analyze/gaps/idle.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/products/products.hpp"
#include "analyze/questions/calls.hpp"
#include "analyze/questions/errors.hpp"
#include "analyze/questions/ioctls.hpp"
#include "analyze/questions/kernels.hpp"
#include "analyze/ranges/ranges.hpp"
#include "analyze/report/report.hpp"
#include "analyze/report/report_data.hpp"
#include "analyze/summary/summary.hpp"
#include "analyze/timeline/timeline.hpp"
#include "analyze/trace_reader.hpp"
#include "memory_file.hpp"
#include "mutate_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

struct Fuzzed {
  std::unique_ptr<Analysis> analysis;
  std::function<Json()> json;
  std::function<void(Page&)> page;
  Part part = {};
};

template <typename Kind>
Fuzzed fuzzed(std::unique_ptr<Kind> analysis, auto json_of, auto show) {
  const Kind& kept = *analysis;
  return {std::move(analysis),
          [&kept, json_of] { return json_of(kept); },
          [&kept, show](Page& page) { show(page, kept); },
          {}};
}

void check_text(std::string_view text) {
  for (char c : text)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') abort();
}

void check_json(std::string_view text) {
  if (!Json::accept(text)) abort();
}

// One of the formats that a trace is exported to, and what has been written of it.
struct Export : Analysis {
  std::string bytes, more;
  ByteStream out{[this](std::string_view piece) { return bytes.append(piece), true; }};
  ByteStream other{[this](std::string_view piece) { return more.append(piece), true; }};
  std::unique_ptr<TrackWriter> writer;  // if it is a timeline
  std::unique_ptr<Analysis> format;

  void line(const Line& line) override { format->line(line); }
  void outside(const Line& line) override { format->outside(line); }
  void finish(const TraceFacts& facts) override {
    format->finish(facts);
    out.flush();
    other.flush();
  }
};

Fuzzed fuzzed_export(std::unique_ptr<Export> format, void (*check)(std::string_view)) {
  return fuzzed(
      std::move(format),
      [check](const Export& done) {
        if (check) check(done.bytes), check(done.more);
        return Json(done.bytes.size() + done.more.size());
      },
      [](Page&, const Export&) {});
}

void add_exports(std::vector<Fuzzed>& all, Names& names) {
  using Packets = PerfettoTrace::Packets;
  auto add_timeline = [&](auto make_writer, void (*check)(std::string_view)) {
    auto one = std::make_unique<Export>();
    one->writer = make_writer(one->out);
    one->format = std::make_unique<Tracks>(names, std::vector{one->writer.get()});
    one->other.text("{}");
    all.push_back(fuzzed_export(std::move(one), check));
  };
  add_timeline([&](ByteStream& out) { return std::make_unique<ChromeTrace>(names, out); },
               check_json);
  for (auto packets : {Packets::deflated, Packets::plain})
    add_timeline(
        [&](ByteStream& out) { return std::make_unique<PerfettoTrace>(names, out, packets); },
        nullptr);
  auto table = std::make_unique<Export>();
  table->format = std::make_unique<CsvTable>(names, table->out);
  all.push_back(fuzzed_export(std::move(table), check_text));
  auto logs = std::make_unique<Export>();
  logs->format = std::make_unique<AlnairLogs>(names, logs->out, logs->other);
  all.push_back(fuzzed_export(std::move(logs), check_text));
}

// With who held the memory when an allocation failed.
struct ErrorsOf : Analysis {
  ErrorsOf(Names& names, Part part) : errors(names, true), memory(names, part) {}
  void line(const Line& line) override {
    errors.line(line);
    memory.line(line);
  }
  void outside(const Line& line) override { memory.outside(line); }
  void finish(const TraceFacts& facts) override {
    errors.finish(facts);
    memory.finish(facts);
  }

  Errors errors;
  Memory memory;
};

// Answers about a part of the trace, of those analyses that follow what is outside of it.
void add_parts(std::vector<Fuzzed>& all, Names& names) {
  constexpr Part PART{100'000, 300'000};
  std::size_t first = all.size();
  all.push_back(fuzzed(
      std::make_unique<Summary>(names, ThreadFilter{}, PART),
      [](const Summary& summary) { return summary.json(); },
      [](Page& page, const Summary& summary) { summary.add_to(page, true); }));
  all.push_back(fuzzed(
      std::make_unique<Memory>(names, PART),
      [](const Memory& memory) {
        Json json = memory_json(memory);
        json["picture"] = memory_svg(memory, "fuzzed");
        return json;
      },
      [](Page& page, const Memory& memory) { add_memory(page, memory, 9); }));
  all.push_back(fuzzed(
      std::make_unique<ErrorsOf>(names, PART),
      [](const ErrorsOf& of) { return errors_json(of.errors.answer(), of.memory); },
      [](Page& page, const ErrorsOf& of) { add_errors(page, of.errors.answer(), of.memory, 9); }));
  auto timeline = std::make_unique<Export>();
  timeline->writer = std::make_unique<ChromeTrace>(names, timeline->out);
  timeline->format = std::make_unique<Tracks>(names, std::vector{timeline->writer.get()}, PART);
  timeline->other.text("{}");
  all.push_back(fuzzed_export(std::move(timeline), check_json));
  for (std::size_t place = first; place < all.size(); place++) all[place].part = PART;
}

DiffSide side_of(const Measures& measures) { return {{figures_of(measures, {})}, &measures}; }

// A seed's first byte is a place in this list, so what is new goes to its end. The exports' places
// are in make-analyses-seeds, too.
void add_measured(std::vector<Fuzzed>& all, Names& names) {
  all.push_back(fuzzed(
      std::make_unique<GpusAtWork>(names, 9),
      [](const GpusAtWork& times) { return gpus_at_work_json(times); },
      [](Page& page, const GpusAtWork& gpus) {
        add_gpus_at_work(page, gpus, {}, 9);
        add_gpu_kernels(page, gpus, 9);
      }));
}

void add_report(std::vector<Fuzzed>& all, Names& names) {
  all.push_back(fuzzed(
      std::make_unique<Report>(names, ThreadFilter{}, Part{}, Moments{}),
      [](const Report& report) { return report.answers(); }, [](Page&, const Report&) {}));
}

// With the threads whose iterations are the steps.
struct RanksInSteps : Analysis {
  explicit RanksInSteps(Names& names) : idle(names, 0), threads({}, idle), ranks(names, threads) {}
  void line(const Line& line) override {
    idle.line(line);
    threads.line(line);
    ranks.line(line);
  }
  void finish(const TraceFacts& facts) override {
    idle.finish(facts);
    threads.finish(facts);
    ranks.finish(facts);
  }

  Idle idle;
  ThreadsAtWork threads;
  Ranks ranks;
};

void add_of_collectives(std::vector<Fuzzed>& all, Names& names) {
  all.push_back(fuzzed(
      std::make_unique<Collectives>(names), collectives_json,
      [](Page& page, const Collectives& collectives) { add_collectives(page, collectives, 9); }));
  all.push_back(fuzzed(
      std::make_unique<RanksInSteps>(names),
      [](const RanksInSteps& of) { return ranks_json(of.ranks); },
      [](Page& page, const RanksInSteps& of) { add_ranks(page, of.ranks, 9); }));
}

// The program's own words: its ranges, its lines, the shapes of its products.
void add_of_the_program(std::vector<Fuzzed>& all, Names& names) {
  all.push_back(fuzzed(std::make_unique<RangeTotals>(names), ranges_json,
                       [](Page& page, const RangeTotals& ranges) { add_ranges(page, ranges, 9); }));
  all.push_back(
      fuzzed(std::make_unique<MatrixProducts>(names), products_json,
             [](Page& page, const MatrixProducts& products) { add_products(page, products, 9); }));
  all.push_back(fuzzed(
      std::make_unique<Kernels>(names, Kernels::By::range),
      [](const Kernels& kernels) { return kernels_json(kernels, Kernels::By::range); },
      [](Page& page, const Kernels& kernels) {
        add_kernels(page, kernels, Kernels::By::range, 9);
      }));
  for (auto by : {GapsBy::gap, GapsBy::range, GapsBy::line})
    all.push_back(fuzzed(
        std::make_unique<Execution>(names, ThreadFilter{}, 9),
        [](const Execution& execution) { return idle_json(execution.idle()); },
        [by](Page& page, const Execution& execution) { add_idle_times(page, execution, 9, by); }));
  for (auto by : {Memory::By::range, Memory::By::line})
    all.push_back(fuzzed(
        std::make_unique<Memory>(names, Part{}, by),
        [](const Memory& memory) { return memory_json(memory); },
        [](Page& page, const Memory& memory) { add_memory(page, memory, 9); }));
  for (auto measure :
       {StackMeasure::host, StackMeasure::gpu, StackMeasure::copied, StackMeasure::allocated}) {
    auto folded = std::make_unique<Export>();
    folded->format = std::make_unique<FoldedStacks>(names, folded->out, measure);
    all.push_back(fuzzed_export(std::move(folded), check_text));
  }
}

std::vector<Fuzzed> all_analyses(Names& names) {
  std::vector<Fuzzed> all;
  add_exports(all, names);
  for (auto by : {Calls::By::function, Calls::By::pid, Calls::By::tid, Calls::By::device,
                  Calls::By::stream, Calls::By::kernel, Calls::By::range, Calls::By::container})
    all.push_back(fuzzed(
        std::make_unique<Calls>(names, by),
        [by](const Calls& calls) { return calls_json(calls.groups(), by); },
        [](Page& page, const Calls& calls) { add_calls(page, calls.groups(), 9); }));
  all.push_back(fuzzed(
      std::make_unique<Summary>(names, ThreadFilter{}),
      [](const Summary& summary) { return summary.json(); },
      [](Page& page, const Summary& summary) { summary.add_to(page, true); }));
  all.push_back(fuzzed(
      std::make_unique<Ioctls>(names),
      [](const Ioctls& ioctls) { return ioctls_json(ioctls.answer()); },
      [](Page& page, const Ioctls& ioctls) {
        add_ioctls(page, ioctls.answer(), IoctlsBy::everything, 9);
      }));
  all.push_back(fuzzed(
      std::make_unique<ErrorsOf>(names, Part{}),
      [](const ErrorsOf& of) { return errors_json(of.errors.answer(), of.memory); },
      [](Page& page, const ErrorsOf& of) { add_errors(page, of.errors.answer(), of.memory, 9); }));
  for (auto by : {Kernels::By::name, Kernels::By::configuration}) {
    all.push_back(fuzzed(
        std::make_unique<Kernels>(names),
        [by](const Kernels& kernels) { return kernels_json(kernels, by); },
        [by](Page& page, const Kernels& kernels) { add_kernels(page, kernels, by, 9); }));
    all.push_back(fuzzed(
        std::make_unique<Measures>(names),
        [by](const Measures& measures) {
          DiffSide side = side_of(measures);
          return difference_json(difference(side, side, by));
        },
        [by](Page& page, const Measures& measures) {
          DiffSide side = side_of(measures);
          add_difference(page, difference(side, side, by), 9);
          DiffSide twice{{side.traces.front(), side.traces.front()}, &measures};
          add_difference(page, difference(side, twice, by), 9);
        }));
  }
  using Window = Timeline::Window;
  for (auto window :
       {std::optional<Window>(), std::optional(Window{.from = 100'000, .to = 300'000})})
    all.push_back(fuzzed(
        std::make_unique<Timeline>(names, window),
        [](const Timeline& timeline) {
          Json json = timeline_json(timeline);
          json["picture"] = timeline_svg(timeline, "fuzzed");
          return json;
        },
        add_timeline));
  all.push_back(fuzzed(
      std::make_unique<Memory>(names),
      [](const Memory& memory) {
        Json json = memory_json(memory);
        json["picture"] = memory_svg(memory, "fuzzed");
        return json;
      },
      [](Page& page, const Memory& memory) { add_memory(page, memory, 9); }));
  add_parts(all, names);
  all.push_back(fuzzed(std::make_unique<Energy>(names, ThreadFilter{}), energy_json, add_energy));
  add_measured(all, names);
  // A fuzzer has more than so few events.
  all.push_back(fuzzed(
      std::make_unique<ReportTimeline>(names, 8),
      [](const ReportTimeline& timeline) {
        return Json{{"bytes", timeline_data(timeline).size()}};
      },
      [](Page&, const ReportTimeline&) {}));
  add_report(all, names);
  add_of_collectives(all, names);
  add_of_the_program(all, names);
  return all;
}

// Shows each line to the analysis, as the reader of a trace gives them. False: the trace is
// refused.
bool show_all(TraceReader& reader, const Fuzzed& fuzzed) {
  reader.want(fuzzed.part, "fuzzed");
  for (;;) {
    auto line = reader.next();
    if (!line) return false;
    if (!*line) break;
    show(**line, fuzzed.part, *fuzzed.analysis);
  }
  fuzzed.analysis->finish(reader.facts());
  return true;
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t at_most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t at_most,
                                          unsigned seed) {
  if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, at_most);
  if (size && seed % 4 == 1) data[0] = static_cast<uint8_t>(seed >> 8);
  size_t mutated = fuzz::mutate_lines(data, size, at_most, 2, seed);
  return mutated ? mutated : LLVMFuzzerMutate(data, size, at_most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  Terminal terminal;
  terminal.width = data[1];
  MemoryFile file({reinterpret_cast<const char*>(data) + 2, size - 2});
  auto reader = TraceReader::open({file.path()});
  if (!reader) return 0;
  auto all = all_analyses((*reader)->names());
  Fuzzed& fuzzed = all[data[0] % all.size()];
  if (!show_all(**reader, fuzzed)) return 0;
  std::string json = fuzzed.json().dump(-1, ' ', false, Json::error_handler_t::replace);
  if (json.empty() || !Json::accept(json)) abort();
  Page page(terminal);
  page.show_moments({(*reader)->facts().header.began(), Moments::Zone::utc});
  add_heading(page, (*reader)->facts());
  fuzzed.page(page);
  add_facts(page, (*reader)->facts());
  check_text(page.take());
  check_json(facts_json((*reader)->facts()).dump(-1, ' ', false, Json::error_handler_t::replace));
  return 0;
}
