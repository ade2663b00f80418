#include "serve/reading.hpp"

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <utility>

#include "analyze/merged_hosts.hpp"
#include "analyze/summary/summary.hpp"
#include "util/saturating.hpp"
#include "util/text/json_text.hpp"
#include "util/text/moments.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::serve {

namespace {

using analyze::Json;

constexpr std::size_t MAX_TEXT = 400;

Json picked(const Json& all, std::initializer_list<const char*> names) {
  Json some = Json::object();
  for (const char* name : names)
    if (auto at = all.find(name); at != all.end()) some[name] = *at;
  return some;
}

// The command that was traced; empty: none was started.
std::string program_in(const TraceHeader& header) {
  std::string program;
  if (header.command)
    for (const std::string& word : *header.command)
      if (program.size() < MAX_TEXT) program += (program.empty() ? "" : " ") + word;
  return shortened(printable(program), MAX_TEXT);
}

// Without a command, the process that did most.
std::string program_of(const analyze::TraceFacts& facts, const Json& summary) {
  std::string program = program_in(facts.header);
  if (program.empty() && !summary["processes"].empty())
    program = text_in(summary["processes"].front(), "comm");
  return shortened(printable(program), MAX_TEXT);
}

Result<Json> read_figures(const Folder& folder, const FoundTrace& trace, IsWanted is_wanted) {
  auto reader = TRY(open_trace(folder, trace, std::move(is_wanted)));
  analyze::Summary summary(reader->names(), {}, reader->facts().part, moments_of(reader->facts()));
  TRY(analyze::analyze(*reader, {&summary}));
  const analyze::TraceFacts& facts = reader->facts();
  Json all = summary.json()["summary"];
  // The first says of a trace that is being written only that it has no end.
  constexpr std::size_t FINDINGS = 2;
  auto& verdict = all["verdict"].get_ref<Json::array_t&>();
  verdict.resize(std::min(FINDINGS, verdict.size()));
  return Json{{"program", program_of(facts, all)},
              {"ended", facts.end.has_value()},
              {"live", was_written_live(trace, facts)},
              {"trace", picked(analyze::facts_json(facts),
                               {"started", "since_us", "duration_us", "calls", "complete", "losses",
                                "cut_off", "missing", "malformed"})},
              {"summary", picked(all, {"calls", "launched", "kernel_runs", "errors", "verdict"})}};
}

}  // namespace

Result<std::unique_ptr<analyze::TraceReader>> open_trace(const Folder& folder,
                                                         const FoundTrace& trace,
                                                         IsWanted is_wanted) {
  return analyze::TraceReader::open(
      trace.files,
      [wanted = std::move(is_wanted)](std::uint64_t, std::uint64_t) { return wanted(); },
      [&folder](const std::string& file) { return folder.open_file(file); });
}

bool was_written_live(const FoundTrace& trace, const analyze::TraceFacts& facts) {
  constexpr std::uint64_t MINUTE = 60'000'000'000;
  std::uint64_t began = facts.header.began();
  return !began || trace.modified() <= saturating_sum(began, saturating_sum(facts.last_ts, MINUTE));
}

Result<Head> head_of(const Folder& folder, const std::string& file) {
  auto reader = TRY(analyze::TraceReader::open(
      {file}, {}, [&folder](const std::string& path) { return folder.open_file(path); }));
  const TraceHeader& header = reader->facts().header;
  Head head;
  auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) head.shown[name] = shortened(printable(value), MAX_TEXT);
  };
  add("host", header.host.empty() ? analyze::hosts_text(header.merged) : header.host);
  add("gpus", analyze::gpus_in(header));
  add("program", program_in(header));
  if (std::uint64_t began = header.began()) add("started", iso_time(began));
  head.clocks = header.clocks;
  head.part = header.part.number;
  return head;
}

Moments moments_of(const analyze::TraceFacts& facts) {
  return {facts.header.began(), Moments::Zone::none};
}

Json figures_of(const Folder& folder, const FoundTrace& trace, IsWanted is_wanted) {
  std::string why = "there is not enough memory to read it";
  try {
    auto figures = read_figures(folder, trace, std::move(is_wanted));
    if (figures) return *figures;
    why = figures.error().message;
  } catch (const std::exception&) {  // no memory, or no thread
  }
  return {{"error", shortened(printable(why), MAX_TEXT)}};
}

}  // namespace cudabpf::serve
