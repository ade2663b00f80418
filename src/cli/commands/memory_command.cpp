// cudabpf memory: how much memory was held, by what, and what was never freed.
#include "analyze/memory/memory.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/trace_paths.hpp"

namespace cudabpf::cli {

namespace {

struct MemoryFlags : TraceFlags {
  std::string svg, by = "process";
  Top top{10};
};

Result<int> print_memory(const MemoryFlags& flags) {
  TRY(is_no_trace(flags.svg, flags.paths));
  auto reader = TRY(open_trace(flags));
  if (flags.by == "line") reader->place_by_line();
  auto by = flags.by == "range"    ? analyze::Memory::By::range
            : flags.by == "line"   ? analyze::Memory::By::line
            : flags.by == "holder" ? analyze::Memory::By::holder
                                   : analyze::Memory::By::process;
  analyze::Memory memory(reader->names(), reader->facts().part, by);
  TRY(read_trace(*reader, {&memory}));
  print_answer(flags, reader->facts(),
               {.json =
                    [&] {
                      analyze::Json json = {{"memory", analyze::memory_json(memory)}};
                      flags.top.cut(json["memory"], {"churn"});
                      flags.top.cut(json["memory"]["never_freed"], {"largest"});
                      return json;
                    },
                .page = [&](Page& page) { analyze::add_memory(page, memory, flags.top.rows); }},
               beside_picture(flags.svg));
  if (flags.svg.empty()) return 0;
  return write_picture(
      flags.svg,
      analyze::memory_svg(memory, "Memory over time: " + analyze::input_name(flags.paths.front())));
}

}  // namespace

void add_memory(CLI::App& app, Action& action) {
  auto flags = std::make_shared<MemoryFlags>();
  CLI::App* sub =
      app.add_subcommand("memory", "Memory over time, its peak, and what was never freed");
  add_trace_flags(*sub, *flags,
                  {"memory traces/h200-gpt2.jsonl.zst",
                   "memory --svg memory.svg traces/h200-gpt2.jsonl.zst   also as a picture",
                   "memory --by range trace.jsonl   by the program's range that allocated it"});
  add_time(*sub, *flags);
  one_of(
      sub->add_option("--by", flags->by,
                      "What to tell apart: processes, the program's ranges or lines of Python that "
                      "allocated, or the libraries whose code asked for it"),
      {"process", "range", "line", "holder"})
      ->capture_default_str();
  sub->add_option("--svg", flags->svg,
                  "Also draw it into this SVG file, for any browser; -: stdout")
      ->type_name("FILE");
  add_top(*sub, flags->top, "Show at most N blocks, and N block sizes");
  sub->callback([flags, &action] { action = [flags] { return print_memory(*flags); }; });
}

}  // namespace cudabpf::cli
