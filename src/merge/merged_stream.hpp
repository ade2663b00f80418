// A merge that is read while it is made: its lines go through a pipe, from a thread of their own.
#pragma once

#include <memory>
#include <thread>

#include "merge/merger.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::merge {

class MergedStream {
 public:
  explicit MergedStream(std::unique_ptr<Merger> merger) : merger_(std::move(merger)) {}
  // The pipe must have been closed by then, unless all was read.
  ~MergedStream();
  MergedStream(const MergedStream&) = delete;
  MergedStream& operator=(const MergedStream&) = delete;

  // Once; the end from which the trace is read.
  Result<Fd> start();

 private:
  void run(Fd to);

  std::unique_ptr<Merger> merger_;
  std::thread thread_;
};

// Reads the traces as one.
Result<std::unique_ptr<analyze::TraceReader>> open_merged(
    const std::vector<Files>& traces,
    const std::function<analyze::TraceReader::Progress()>& progress);

}  // namespace cudabpf::merge
