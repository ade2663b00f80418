// cudabpf memory: how much memory was held, by what, and what was never freed.
#include "analyze/memory.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/trace_command.hpp"

namespace cudabpf::cli {

namespace {

struct MemoryFlags : TraceFlags {
  std::string svg;
  std::size_t top = 10;
};

Result<int> print_memory(const MemoryFlags& flags) {
  if (auto free = is_no_trace(flags.svg, flags.paths); !free) return free.error();
  auto reader = open_trace(flags.paths);
  if (!reader) return reader.error();
  analyze::Memory memory((*reader)->names());
  auto status = answer(flags, **reader, {&memory},
                       {.json =
                            [&] {
                              return analyze::Json{{"memory", analyze::memory_json(memory)}};
                            },
                        .page = [&](Page& page) { analyze::add_memory(page, memory, flags.top); }});
  if (!status || flags.svg.empty()) return status;
  return write_picture(flags.svg,
                       analyze::memory_svg(memory, "Memory over time: " + flags.paths.front()));
}

}  // namespace

void add_memory(CLI::App& app, Action& action) {
  auto flags = std::make_shared<MemoryFlags>();
  CLI::App* sub =
      app.add_subcommand("memory", "Of a trace: memory over time, its peak, what was never freed");
  add_trace_flags(*sub, *flags);
  sub->add_option("--svg", flags->svg, "Draw it into this file as well, for any browser")
      ->type_name("FILE");
  add_top(*sub, flags->top, "At most so many blocks, and sizes of blocks");
  sub->callback([flags, &action] { action = [flags] { return print_memory(*flags); }; });
}

}  // namespace cudabpf::cli
