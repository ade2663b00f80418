// cudabpf ranks: which rank made the others wait in collectives, and whether all asked for the
// same.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analyze/collectives/ranks.hpp"
#include "cli/commands.hpp"
#include "cli/reading_command.hpp"
#include "cli/shown.hpp"
#include "serve/folder.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// A folder stands for the traces in it. Others, and what is no folder, stay as they are.
Result<std::vector<std::string>> with_folders(const std::vector<std::string>& paths) {
  constexpr std::size_t MAX = 10'000;
  TRY(become_reader());
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      all.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
         at.increment(error))
      if (found.size() < MAX && serve::is_trace_name(at->path().filename().string()))
        found.push_back(at->path().string());
    if (error) return Error{path + ": " + error.message()};
    if (found.empty())
      return Error{path + " has no traces", "their names end in .jsonl or .jsonl.zst",
                   exit_code::USAGE};
    std::sort(found.begin(), found.end());
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

Result<int> print_ranks(TraceFlags flags) {
  flags.paths = TRY(with_folders(flags.paths));
  auto reader = TRY(open_trace(flags));
  const analyze::Part& part = reader->facts().part;
  analyze::Idle idle(reader->names(), 0, part);
  analyze::ThreadsAtWork threads({}, idle, part);
  analyze::Ranks ranks(reader->names(), threads, part);
  return answer(flags, *reader, {&idle, &threads, &ranks},
                {.json = [&] { return ranks_json(ranks); },
                 .page = [&](Page& page) { add_ranks(page, ranks, flags.top.rows); },
                 .lists = {"communicators", "mismatches"}});
}

}  // namespace

void add_ranks(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<TraceFlags>(app, action, "ranks",
                                              "Which rank made the others wait in collectives, and "
                                              "whether all requested the same operations",
                                              print_ranks);
  add_trace_flags(sub, flags,
                  {"ranks traces/example-ranks.jsonl.zst",
                   "ranks --from 100ms --to 200ms traces/example-ranks.jsonl.zst"});
  sub.get_option("trace")->description(
      "The traces of the ranks, plain or .zst, or one that has several ranks; a folder: all traces "
      "in it; -: stdin");
  add_time(sub, flags);
  add_top(sub, flags.top, 10, "Show at most N communicators, and N rows of each table");
}

}  // namespace cudabpf::cli
