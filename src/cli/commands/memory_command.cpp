// cudabpf memory: how much memory was held, by what, and what was never freed.
#include "analyze/memory/memory.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct MemoryFlags : TraceFlags {
  analyze::Memory::By by = analyze::Memory::By::process;
};

Result<int> print_memory(const MemoryFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Memory memory(reader->names(), reader->facts().part, flags.by);
  return answer(flags, *reader, {&memory},
                {.json =
                     [&] {
                       return analyze::Json{{"memory", memory_json(memory)}};
                     },
                 .page = [&](Page& page) { add_memory(page, memory, flags.top.rows); },
                 .lists = {"memory/churn", "memory/never_freed/largest"},
                 .svg =
                     [&] {
                       return memory_svg(
                           memory, "Memory over time: " + analyze::input_name(flags.paths.front()));
                     }});
}

}  // namespace

void add_memory(CLI::App& app, Action& action) {
  using enum analyze::Memory::By;
  auto [sub, flags] = add_command<MemoryFlags>(
      app, action, "memory", "Memory over time, its peak, and what was never freed", print_memory);
  add_trace_flags(sub, flags,
                  {"memory traces/h200-gpt2.jsonl.zst",
                   "memory --svg memory.svg traces/h200-gpt2.jsonl.zst   also as a picture",
                   "memory --by range trace.jsonl   by the program's range that allocated it"});
  add_time(sub, flags);
  add_by(sub, flags, flags.by,
         {{"process", process}, {"range", range}, {"line", line}, {"holder", holder}},
         "What to tell apart: processes, the program's ranges or lines of Python that "
         "allocated, or the libraries whose code asked for it");
  add_svg(sub, flags);
  add_top(sub, flags.top, 10, "Show at most N blocks, and N block sizes");
}

}  // namespace cudabpf::cli
