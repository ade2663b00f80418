// cudabpf gemms: what matrix products cost, by what they multiply.
#include <nlohmann/json.hpp>

#include "analyze/products/products.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

Result<int> print_gemms(const TraceFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::MatrixProducts products(reader->names());
  return answer(flags, *reader, {&products},
                {.json = [&] { return products_json(products); },
                 .page = [&](Page& page) { add_products(page, products, flags.top.rows); },
                 .lists = {"products"}});
}

}  // namespace

void add_gemms(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(
      app, action, "gemms",
      "What matrix products (cuBLAS) cost, by shape, and how close GPUs came to their peaks",
      print_gemms);
  add_trace_flags(sub, flags,
                  {"gemms traces/example-gemms.jsonl.zst",
                   "gemms --json --top 3 traces/example-gemms.jsonl.zst"});
  add_time(sub, flags);
  add_top(sub, flags.top, 30, "Show at most N shapes");
}

}  // namespace cudabpf::cli
