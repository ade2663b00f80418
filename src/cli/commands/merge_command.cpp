// cudabpf merge: one trace of several, on one time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "analyze/merged_hosts.hpp"
#include "cli/commands.hpp"
#include "cli/merged_file.hpp"
#include "cli/reading_command.hpp"
#include "cli/request/trace_paths.hpp"
#include "cli/traces_apart.hpp"
#include "merge/merger.hpp"

namespace cudabpf::cli {

namespace {

struct MergeFlags {
  std::vector<std::string> paths;
  std::string output;
  bool json = false;

  bool to_stdout() const { return output == "-"; }
};

void print_merge(const MergeFlags& flags, const merge::Merger& merger, std::uint64_t bytes) {
  std::FILE* to = flags.to_stdout() ? stderr : stdout;
  if (flags.json) {
    analyze::Json json = {{"files", {{{"path", flags.output}, {"bytes", bytes}}}},
                          {"lines", merger.lines()}};
    json.update(analyze::merged_json(merger.traces()));
    return print_json(json, to);
  }
  Page page = page_for(to);
  analyze::add_merged(page, merger.traces());
  page.blank();
  page.paragraph(fmt::format("written: {}, {}, {}",
                             flags.to_stdout() ? "standard output" : printable(flags.output),
                             count_of(merger.lines(), "line", "lines"), human_bytes(bytes)),
                 0);
  show(page.take(), to);
}

Result<int> merge_traces(const MergeFlags& flags) {
  TRY(is_no_trace(flags.output, flags.paths));
  TRY(become_reader());
  auto traces = TRY(traces_of(flags.paths, TracesAre::to_be_merged));
  auto merger = TRY(merge::Merger::open(traces, reading_progress));
  std::uint64_t bytes = TRY(write_merge(*merger, flags.output));
  print_merge(flags, *merger, bytes);
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<MergeFlags>(
      app, action, "merge", "Merge traces of several ranks or hosts into one, on a common clock",
      merge_traces);
  add_reading_footer(
      sub, {"merge traces/h200-gpt2.jsonl.zst traces/h200-two-gpus.jsonl.zst -o both.jsonl.zst",
            "summary traces/h200-gpt2.jsonl.zst traces/h200-two-gpus.jsonl.zst   "
            "answers need no file for that"});
  sub.add_option("trace", flags.paths,
                 "The traces, plain or .zst; of a rotated one, all files in order")
      ->type_name("TRACE")
      ->required();
  sub.add_option("-o,--output", flags.output,
                 "The file to write, compressed if it ends in .zst; -: stdout")
      ->type_name("FILE")
      ->required();
  add_json(sub, flags.json);
}

}  // namespace cudabpf::cli
