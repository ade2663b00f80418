// A trace, line by line: from one file, or from the files of a rotated trace in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyze/derived/derived_fields.hpp"
#include "analyze/not_recorded.hpp"
#include "trace/end.hpp"
#include "trace/header.hpp"
#include "trace/read/line_parser.hpp"
#include "trace/read/lines_ahead.hpp"
#include "trace/read/part.hpp"
#include "trace/read/trace_source.hpp"

namespace cudabpf::analyze {

// What is known about a trace besides its events, once all of it has been read.
struct TraceFacts {
  struct Loss {
    bool degraded = false;
    std::uint64_t count = 0;
    bool uncounted = false;  // and an unknown number more

    // "12 ring_full_entry", "at least 3 late_library": everywhere the same words.
    std::string text(std::string_view reason) const;
  };

  std::vector<std::string> paths;
  Part part;                                      // the wanted one, and where the files begin
  std::string part_name;                          // "inference"; empty: it has none
  WantedRanges ranges;                            // those of the part
  TraceHeader header;                             // of the first file
  std::optional<TraceEnd> end;                    // of the last; nothing: it was cut off
  std::map<std::uint32_t, std::string> attached;  // the first processes: name and command
  std::vector<std::string> left_out;              // kinds of calls of which some are missing
  NotRecorded not_recorded;                       // what was wanted, and could not be recorded
  std::uint64_t recorded_duration = 0;            // ns, according to `end`
  std::uint64_t lines = 0;                        // whole ones, including unreadable ones
  std::uint64_t bytes = 0;                        // of them
  std::uint64_t malformed = 0;  // lines that are not JSON objects in the trace's format
  std::vector<std::string> first_malformed;  // where they are: "trace.jsonl:17"
  std::uint64_t calls = 0, calls_in_part = 0;
  std::uint64_t operations = 0;        // on the driver
  std::uint64_t unknown = 0;           // lines of types that this version does not know
  std::vector<std::string> cut_off;    // files without an `end` line, and how they stop
  std::vector<std::string> missing;    // files of a rotated trace that were not given
  std::map<std::string, Loss> losses;  // by reason
  std::uint64_t put_away = 0;          // processes taken for gone, perhaps wrongly
  std::uint64_t last_ts = 0;

  bool leaves_out(std::string_view kind) const {
    return std::find(left_out.begin(), left_out.end(), kind) != left_out.end();
  }
  // ns: as `end` says, or up to the last event seen.
  std::uint64_t duration() const { return std::max(recorded_duration, last_ts); }
  // Without the time before what is in the files.
  std::uint64_t recorded_time() const {
    return duration() - std::min(duration(), part.recorded_from);
  }
};

class TraceReader {
 public:
  // False: the caller wants no more, and reading fails.
  using Progress = std::function<bool(std::uint64_t read, std::uint64_t size)>;
  // By the path that the reader was given.
  using OpenFile = std::function<Result<Fd>(const std::string& path)>;

  static Result<std::unique_ptr<TraceReader>> open(std::vector<std::string> paths,
                                                   Progress progress = {},
                                                   OpenFile open_file = open_trace_file);

  // Null: there are no more. Lines that cannot be read are counted and skipped.
  Result<const Line*> next();

  Names& names() { return parser_.names(); }
  const Names& names() const { return parser_.names(); }
  const TraceFacts& facts() const { return facts_; }
  // Every line is still read, since a line's meaning follows from those before it.
  // Ranges: as RangePlaces wants them; empty: all.
  void want(Part part, std::string name, std::string_view ranges = {});
  // Instead of the program's ranges, answers keep the lines of its Python apart.
  void place_by_line() { derived_.place_by_line(); }
  // Lines come as they were written, without what follows from those before them: that takes
  // memory for each trace.
  void derive_nothing() { derives_ = false; }
  // Its one file is a stream of lines from these.
  void is_made_of(std::vector<std::string> paths) { facts_.paths = std::move(paths); }
  // While a trace is being recorded, a last file without an end is no fault. `is_recorded` is
  // called when everything there has been read.
  void expect_more(std::function<bool(const TraceFacts&)> is_recorded) {
    expects_more_ = std::move(is_recorded);
  }

 private:
  TraceReader(std::vector<std::string> paths, Progress progress, OpenFile open_file);

  Result<> open_next();
  Result<> take_header(std::string_view text);
  void note_merged(const std::vector<MergedTrace>& merged);
  void end_file();
  void note(const Line& line);
  void note_attached(const Line& line);
  TraceFacts::Loss* loss_of(std::string_view reason);  // in this file; null: there are too many
  void note_losses(const TraceTotals& totals);
  void malformed();

  LineParser parser_;
  DerivedFields derived_{parser_.names()};
  TraceFacts facts_;
  Progress progress_;
  OpenFile open_file_;
  bool derives_ = true;
  std::vector<std::string> files_;
  std::size_t file_ = 0;  // how many were opened
  std::unique_ptr<TraceSource> source_;
  std::unique_ptr<LinesAhead> ahead_;
  LinesAhead::Batch batch_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = false;                                   // this file's `end` line was read
  bool half_line_ = false;                               // this file ends within a line
  std::function<bool(const TraceFacts&)> expects_more_;  // after the last file's end
  std::optional<TraceClocks> clocks_;                    // of the first file
  std::uint64_t since_ = 0;                              // when this file begins
  unsigned part_ = 0;                                    // of the file read last; 0: not rotated
  std::map<std::string, TraceFacts::Loss> losses_here_;  // of this file, according to its lines
};

}  // namespace cudabpf::analyze
