// cudabpf schema: the trace format's document, or SQL that loads traces.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "analyze/export/sql_schema.hpp"
#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/help.hpp"
#include "cli/shown.hpp"

namespace cudabpf::cli {

namespace {
constexpr char TRACE_FORMAT[] =
#include "trace_format.inc"
    ;

struct SchemaFlags {
  std::string engine;
  std::vector<std::string> traces;
};

int print_schema(SchemaFlags flags) {
  if (flags.engine.empty()) {
    show(TRACE_FORMAT, stdout);
    return 0;
  }
  bool duckdb = flags.engine == analyze::SQL_ENGINES[0];
  if (flags.traces.empty()) flags.traces = {"traces/*.jsonl*"};
  show(analyze::sql_schema(duckdb ? analyze::SqlEngine::duckdb : analyze::SqlEngine::clickhouse,
                           flags.traces),
       stdout);
  return 0;
}

}  // namespace

void add_schema(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<SchemaFlags>(
      app, action, "schema",
      "Print the trace format: every line's type and fields; or SQL that loads traces",
      print_schema);
  auto* engine =
      one_of(sub.add_option("engine", flags.engine,
                            "Print SQL for it instead: tables, views, and what loads traces"),
             {analyze::SQL_ENGINES.begin(), analyze::SQL_ENGINES.end()});
  sub.add_option("trace", flags.traces,
                 "What the SQL loads: traces, or patterns of them; default: traces/*.jsonl*")
      ->option_text("TRACE ...")
      ->needs(engine);
  add_footer(sub,
             {"cudabpf schema", "cudabpf schema | grep duration_us   one field's description",
              "cudabpf schema duckdb > load.sql   for: duckdb runs.db < load.sql",
              "cudabpf schema clickhouse 'runs/*.jsonl.zst'"},
             printing_statuses());
}

}  // namespace cudabpf::cli
