#include "trace/files/block_queue.hpp"

#include <utility>

namespace cudabpf {

namespace {
constexpr std::size_t BLOCK_SIZE = 1 << 20;
constexpr unsigned MAX_BLOCKS = 16;
}  // namespace

LineBlock BlockQueue::take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !free_.empty() || made_ < MAX_BLOCKS; });
  if (free_.empty()) {
    made_++;
    lock.unlock();
    LineBlock block;
    block.bytes = std::make_unique_for_overwrite<char[]>(BLOCK_SIZE);
    block.capacity = BLOCK_SIZE;
    return block;
  }
  LineBlock block = std::move(free_.back());
  free_.pop_back();
  return block;
}

void BlockQueue::put(LineBlock block) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(block));
  }
  put_.notify_one();
}

void BlockQueue::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  put_.notify_one();
}

bool BlockQueue::is_done() {
  std::lock_guard lock(mutex_);
  return queue_.empty() && closed_;
}

std::optional<LineBlock> BlockQueue::next(std::optional<std::chrono::milliseconds> patience) {
  std::unique_lock lock(mutex_);
  auto something = [&] { return !queue_.empty() || closed_; };
  if (patience)
    put_.wait_for(lock, *patience, something);
  else
    put_.wait(lock, something);
  if (queue_.empty()) return std::nullopt;
  LineBlock block = std::move(queue_.front());
  queue_.pop_front();
  return block;
}

void BlockQueue::give_back(LineBlock block) {
  block.size = 0;
  block.lines = 0;
  block.file_end.reset();
  {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(block));
  }
  returned_.notify_one();
}

}  // namespace cudabpf
