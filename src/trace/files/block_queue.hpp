// Blocks of lines between the thread that fills them and the one that empties them. Their number is
// limited: the filling thread waits if the other is far behind.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "trace/files/trace_output.hpp"

namespace cudabpf {

class BlockQueue {
 public:
  // For the thread that fills them.
  LineBlock take();  // an empty one; waits while too many are on their way
  void put(LineBlock block);
  void close();  // no more come

  // For the thread that empties them.
  bool is_done();  // all were taken, and no more come
  // Waits for the next block, for ever or for this long. Nothing: none came.
  std::optional<LineBlock> next(std::optional<std::chrono::milliseconds> patience);
  void give_back(LineBlock block);

 private:
  std::mutex mutex_;
  std::condition_variable put_, returned_;
  std::deque<LineBlock> queue_;
  std::vector<LineBlock> free_;
  unsigned made_ = 0;
  bool closed_ = false;
};

}  // namespace cudabpf
