// cudabpf gemms: what matrix products cost, by what they multiply.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/products/products.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct GemmsFlags : TraceFlags {
  Top top{30};
};

Result<int> print_gemms(const GemmsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::MatrixProducts products(reader->names());
  return answer(flags, *reader, {&products},
                {.json =
                     [&] {
                       analyze::Json json = products_json(products);
                       flags.top.cut(json, {"products"});
                       return json;
                     },
                 .page = [&](Page& page) { add_products(page, products, flags.top.rows); }});
}

}  // namespace

void add_gemms(CLI::App& app, Action& action) {
  auto flags = std::make_shared<GemmsFlags>();
  CLI::App* sub = app.add_subcommand(
      "gemms",
      "What matrix products (cuBLAS) cost, by shape, and how near GPUs came to their peaks");
  add_trace_flags(*sub, *flags,
                  {"gemms traces/example-gemms.jsonl.zst",
                   "gemms --json --top 3 traces/example-gemms.jsonl.zst"});
  add_time(*sub, *flags);
  add_top(*sub, flags->top, "Show at most N shapes");
  sub->callback([flags, &action] { action = [flags] { return print_gemms(*flags); }; });
}

}  // namespace cudabpf::cli
