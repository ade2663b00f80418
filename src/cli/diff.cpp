// cudabpf diff: what changed from one trace to another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/difference.hpp"
#include "cli/commands.hpp"
#include "cli/trace_command.hpp"

namespace cudabpf::cli {

namespace {

struct DiffFlags {
  std::string a, b;
  std::string by = "name";
  std::size_t top = 15;
  bool json = false;
};

// A trace, and what was measured of it; names belong to the reader.
struct Measured {
  std::unique_ptr<analyze::TraceReader> reader;
  std::unique_ptr<analyze::Measures> measures;
};

Result<Measured> measure(const std::string& path) {
  auto reader = open_trace({path});
  if (!reader) return reader.error();
  Measured measured{std::move(*reader), nullptr};
  measured.measures = std::make_unique<analyze::Measures>(measured.reader->names());
  if (auto read = analyze::analyze(*measured.reader, {measured.measures.get()}); !read)
    return read.error();
  return measured;
}

Result<int> print_diff(const DiffFlags& flags) {
  auto a = measure(flags.a);
  if (!a) return a.error();
  auto b = measure(flags.b);
  if (!b) return b.error();
  auto by = flags.by == "name" ? analyze::Kernels::By::name : analyze::Kernels::By::configuration;
  analyze::Difference difference = analyze::difference(*a->measures, *b->measures, by);
  if (flags.json) {
    analyze::Json whole = {{"a", analyze::facts_json(a->reader->facts())},
                           {"b", analyze::facts_json(b->reader->facts())}};
    whole.update(difference_json(difference));
    print_json(whole, stdout);
    return 0;
  }
  Page page = page_for(stdout);
  page.line("A: " + printable(flags.a));
  page.line("B: " + printable(flags.b));
  add_difference(page, difference, flags.top);
  fmt::print("{}", page.take());
  for (auto [name, of] : {std::pair{"A", &*a}, {"B", &*b}}) {
    Page missing = page_for(stdout);
    analyze::add_facts(missing, of->reader->facts());
    if (missing.empty()) continue;
    fmt::print("\nof {}:\n{}", name, missing.take());
  }
  return 0;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto flags = std::make_shared<DiffFlags>();
  CLI::App* sub = app.add_subcommand("diff", "Of two traces: what changed from one to the other");
  sub->add_option("a", flags->a, "A trace, plain or .zst; -: from stdin")
      ->type_name("A")
      ->required();
  sub->add_option("b", flags->b, "What it is compared with")->type_name("B")->required();
  sub->add_flag("--json", flags->json, "One JSON object, for programs");
  sub->add_option("--by", flags->by, "Kernels apart for each name, or each launch configuration")
      ->type_name("name|configuration")
      ->check(CLI::IsMember({"name", "configuration"}).description(""))
      ->capture_default_str();
  add_top(*sub, flags->top, "At most so many rows of each");
  sub->callback([flags, &action] { action = [flags] { return print_diff(*flags); }; });
}

}  // namespace cudabpf::cli
