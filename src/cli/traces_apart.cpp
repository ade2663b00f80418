#include "cli/traces_apart.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cli/reading_command.hpp"
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
  auto reader = TRY(open_trace({path}));
  const TraceHeader& header = reader->facts().header;
  return Identity{header.clocks, header.part.number};
}

}  // namespace

Result<std::vector<Paths>> traces_of(const Paths& files, TracesAre are) {
  if (files.size() == 1) return std::vector<Paths>{files};
  std::vector<Paths> traces;
  std::vector<Identity> seen;
  for (const std::string& file : files) {
    Identity identity = TRY(identity_of(file));
    bool follows = !seen.empty() && identity.follows(seen.back());
    if (are == TracesAre::runs_of_one && !follows && identity.clocks)
      for (std::size_t i = 0; i < seen.size(); i++)
        if (seen[i].clocks == identity.clocks)
          return Error{file + " is of the same trace as " + files[i],
                       "give other runs of the program: only they show how much runs differ",
                       exit_code::USAGE};
    if (follows)
      traces.back().push_back(file);
    else
      traces.push_back({file});
    seen.push_back(identity);
  }
  return traces;
}

}  // namespace cudabpf::cli
