// A trace's lines, in order. A thread scans them ahead of the reader; those that it cannot scan,
// because they have new names or are not as cudabpf writes them, come unread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "trace/read/line_parser.hpp"
#include "trace/read/trace_source.hpp"

namespace cudabpf::analyze {

class LinesAhead {
 public:
  struct Item {
    Line line;             // at least its number and its text
    bool scanned = false;  // it has its fields, too
    bool whole = false;    // it ends with a newline
  };
  struct Batch {
    std::vector<Item> items;  // of which the first `count` are lines
    std::size_t count = 0;
    TraceSource::Block block;  // of a block's last batch: what all its lines' texts are in
  };

  // `first` is the source's first block; its lines begin at `at`, after the one with this number.
  // The parser may be used at the same time to read the lines that come unread.
  LinesAhead(TraceSource& source, TraceSource::Block first, std::size_t at, std::uint64_t number,
             const LineParser& parser);
  ~LinesAhead();
  LinesAhead(const LinesAhead&) = delete;
  LinesAhead& operator=(const LinesAhead&) = delete;

  // False: there are no more. Some batches are empty, as the source's blocks are.
  bool next(Batch& batch);

 private:
  void run(TraceSource::Block block, std::size_t at, std::uint64_t number);
  Batch empty_batch(TraceSource::Block& spent);
  bool hand_over(Batch batch);  // false: no more are wanted

  TraceSource& source_;
  const LineParser& parser_;
  LinePatterns patterns_;  // of the thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_, spare_;
  bool done_ = false;
  bool unwanted_ = false;
  std::thread thread_;
};

}  // namespace cudabpf::analyze
