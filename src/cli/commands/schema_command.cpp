// cudabpf schema: the trace format's document.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/shown.hpp"

namespace cudabpf::cli {

namespace {
constexpr char TRACE_FORMAT[] =
#include "trace_format.inc"
    ;
}  // namespace

void add_schema(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("schema", "Print the trace format: every line's type and fields");
  add_footer(*sub,
             {"cudabpf schema", "cudabpf schema | grep duration_us   one field's description"},
             printing_statuses());
  sub->callback([&action] {
    action = [] {
      show(TRACE_FORMAT, stdout);
      return 0;
    };
  });
}

}  // namespace cudabpf::cli
