// cudabpf ioctls: what the NVIDIA driver was asked for, and by which CUDA calls.
#include "analyze/questions/ioctls.hpp"

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/reading_command.hpp"

namespace cudabpf::cli {

namespace {

struct IoctlsFlags : TraceFlags {
  analyze::IoctlsBy by = analyze::IoctlsBy::everything;
};

Result<int> print_ioctls(const IoctlsFlags& flags) {
  auto reader = TRY(open_trace(flags));
  analyze::Ioctls ioctls(reader->names());
  return answer(
      flags, *reader, {&ioctls},
      {.json = [&] { return ioctls_json(ioctls.answer()); },
       .page = [&](Page& page) { add_ioctls(page, ioctls.answer(), flags.by, flags.top.rows); },
       .lists = {"operations", "groups", "commands", "calls", "outside_of_calls", "devices",
                 "processes"}});
}

}  // namespace

void add_ioctls(CLI::App& app, Action& action) {
  using enum analyze::IoctlsBy;
  auto [sub, flags] = add_command<IoctlsFlags>(
      app, action, "ioctls", "Requests to the NVIDIA driver, and the calls that made them",
      print_ioctls);
  add_trace_flags(sub, flags,
                  {"ioctls traces/h200-gpt2.jsonl.zst   a trace recorded with --kernel",
                   "ioctls --by call traces/h200-gpt2.jsonl.zst   the calls that made them"});
  add_time(sub, flags);
  add_by(sub, flags, flags.by,
         {{"call", call},
          {"command", command},
          {"device", device},
          {"group", group},
          {"process", process}},
         "Show only this table");
  add_top(sub, flags.top, 20, "Show at most N rows of each table");
}

}  // namespace cudabpf::cli
