#include "cli/traces_apart.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

#include "analyze/trace_reader.hpp"
#include "cli/shown.hpp"
#include "trace/header.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// What distinguishes the files of a rotated trace from other traces.
struct Identity {
  std::optional<TraceClocks> clocks;
  unsigned part = 0;  // 0: the trace was not rotated

  bool follows(const Identity& last) const {
    return part && last.part && clocks == last.clocks && (clocks || part == last.part + 1);
  }
};

Result<Identity> identity_of(const std::string& path) {
  std::error_code error;
  auto status = std::filesystem::status(path, error);
  if (path == "-" || (exists(status) && !is_regular_file(status)))
    return Error{path + ": not a file",
                 "of several traces, each must be a file, since some are read twice",
                 exit_code::USAGE};
  TRY(become_reader());
  auto reader = TRY(analyze::TraceReader::open({path}));
  const TraceHeader& header = reader->facts().header;
  // A merge has the clocks of one of its traces.
  return Identity{header.merged.empty() ? header.clocks : std::nullopt, header.part.number};
}

}  // namespace

Result<std::vector<Paths>> traces_of(const Paths& files, TracesAre are) {
  if (files.size() == 1) return std::vector<Paths>{files};
  std::vector<Paths> traces;
  std::vector<Identity> seen, of_traces;
  for (const std::string& file : files) {
    Identity identity = TRY(identity_of(file));
    bool follows = !seen.empty() && identity.follows(seen.back());
    if (are == TracesAre::runs_of_one && !follows && identity.clocks)
      for (std::size_t i = 0; i < seen.size(); i++)
        if (seen[i].clocks == identity.clocks)
          return Error{file + " is of the same trace as " + files[i],
                       "give other runs of the program: only they show how much runs differ",
                       exit_code::USAGE};
    Paths* its = follows ? &traces.back() : nullptr;
    if (are == TracesAre::to_be_merged && identity.clocks && !its)
      for (std::size_t i = 0; i < traces.size() && !its; i++)
        if (of_traces[i].clocks == identity.clocks) its = &traces[i];
    if (its) {
      its->push_back(file);
    } else {
      traces.push_back({file});
      of_traces.push_back(identity);
    }
    seen.push_back(identity);
  }
  return traces;
}

}  // namespace cudabpf::cli
