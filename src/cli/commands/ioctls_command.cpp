// cudabpf ioctls: what the NVIDIA driver was asked for, and by which CUDA calls.
#include "analyze/questions/ioctls.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/flags/one_of.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

using analyze::IoctlsBy;

const std::map<std::string, IoctlsBy> BY = {
    {"command", IoctlsBy::command}, {"group", IoctlsBy::group},     {"call", IoctlsBy::call},
    {"device", IoctlsBy::device},   {"process", IoctlsBy::process},
};

struct IoctlsFlags : TraceFlags {
  std::string by;
  Top top{20};
};

Result<int> print_ioctls(const IoctlsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  IoctlsBy by = flags.by.empty() ? IoctlsBy::everything : BY.at(flags.by);
  analyze::Ioctls ioctls(reader->names());
  return answer(
      flags, *reader, {&ioctls},
      {.json =
           [&] {
             analyze::Json json = analyze::ioctls_json(ioctls.answer());
             flags.top.cut(json, {"operations", "groups", "commands", "calls", "outside_of_calls",
                                  "devices", "processes"});
             return json;
           },
       .page = [&](Page& page) { add_ioctls(page, ioctls.answer(), by, flags.top.rows); }});
}

}  // namespace

void add_ioctls(CLI::App& app, Action& action) {
  auto flags = std::make_shared<IoctlsFlags>();
  CLI::App* sub =
      app.add_subcommand("ioctls", "Requests to the NVIDIA driver, and the calls that made them");
  add_trace_flags(*sub, *flags,
                  {"ioctls traces/h200-gpt2.jsonl.zst   a trace recorded with --kernel",
                   "ioctls --by call traces/h200-gpt2.jsonl.zst   the calls that made them"});
  add_time(*sub, *flags);
  std::vector<std::string> by;
  by.reserve(BY.size());
  for (const auto& [name, table] : BY) by.push_back(name);
  one_of(sub->add_option("--by", flags->by, "Show only this table"), by);
  add_top(*sub, flags->top, "Show at most N rows of each table");
  sub->callback([flags, &action] { action = [flags] { return print_ioctls(*flags); }; });
}

}  // namespace cudabpf::cli
