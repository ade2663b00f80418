// Makes one trace of several: puts them on one time, keeps their numbers apart, and gives their
// lines in the order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_reader.hpp"
#include "merge/machine_lines.hpp"
#include "merge/moved_lines.hpp"
#include "merge/survey.hpp"
#include "trace/merged.hpp"
#include "util/result.hpp"

namespace cudabpf::merge {

using Files = std::vector<std::string>;  // of one trace, in order

class Merger {
 public:
  // Reads all of each trace once. `progress` makes one for each of them.
  static Result<std::unique_ptr<Merger>> open(
      const std::vector<Files>& traces,
      const std::function<analyze::TraceReader::Progress()>& progress);
  ~Merger();

  // The traces as the header describes them.
  const std::vector<MergedTrace>& traces() const { return merged_; }

  // Adds some whole lines to the text, the header first and the end last. False: there are none
  // left.
  Result<bool> next(std::string& lines);
  std::uint64_t lines() const { return lines_; }  // so far

 private:
  struct Source;

  Merger() = default;
  Result<std::vector<std::vector<Meeting>>> meetings() const;
  Result<> place();
  Result<> refuse_twice() const;
  Result<> open_sources();
  Result<> advance(Source& source);

  std::vector<Surveyed> surveyed_;
  MachineLines machine_lines_;
  std::vector<MergedTrace> merged_;
  std::uint64_t given_ = 1;  // pieces of ids
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<Source*> by_time_;  // a heap: those that have lines left, the earliest on top
  std::uint64_t lines_ = 0;
  bool begun_ = false, ended_ = false;
};

}  // namespace cudabpf::merge
