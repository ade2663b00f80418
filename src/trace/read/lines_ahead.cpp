#include "trace/read/lines_ahead.hpp"

#include <cstring>
#include <utility>

namespace cudabpf::analyze {

namespace {

// Enough to pay for a thread's waking up, and few enough to stay in a core's cache.
constexpr std::size_t LINES_AT_ONCE = 1024;
constexpr std::size_t BATCHES_AHEAD = 4;

}  // namespace

LinesAhead::LinesAhead(TraceSource& source, TraceSource::Block first, std::size_t at,
                       std::uint64_t number, const LineParser& parser)
    : source_(source), parser_(parser) {
  thread_ = std::thread([this, block = std::move(first), at, number]() mutable {
    run(std::move(block), at, number);
  });
}

LinesAhead::~LinesAhead() {
  source_.give_up();
  {
    std::lock_guard lock(mutex_);
    unwanted_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LinesAhead::next(Batch& batch) {
  std::unique_lock lock(mutex_);
  if (!batch.items.empty()) spare_.push_back(std::move(batch));
  batch = {};
  changed_.wait(lock, [&] { return !ready_.empty() || done_; });
  if (ready_.empty()) return false;
  batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return true;
}

void LinesAhead::run(TraceSource::Block block, std::size_t at, std::uint64_t number) {
  do {
    TraceSource::Block spent;
    Batch batch = empty_batch(spent);
    while (at < block.size) {
      if (batch.count == LINES_AT_ONCE) {
        if (!hand_over(std::move(batch))) return;
        batch = empty_batch(spent);
      }
      const char* begin = block.bytes.get() + at;
      const void* newline = std::memchr(begin, '\n', block.size - at);
      std::size_t size = newline
                             ? static_cast<std::size_t>(static_cast<const char*>(newline) - begin)
                             : block.size - at;
      at += size + 1;
      number++;
      if (!size) continue;
      Item& item = batch.items[batch.count++];
      item.line.number = number;
      item.whole = newline;
      item.scanned = parser_.scan({begin, size}, item.line, patterns_);
    }
    batch.block = std::move(block);
    if (!hand_over(std::move(batch))) return;
    block = std::move(spent);
    at = 0;
  } while (source_.next(block));
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

// `spent` gets the block that the batch had, for the source to fill again.
LinesAhead::Batch LinesAhead::empty_batch(TraceSource::Block& spent) {
  Batch batch;
  {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      batch = std::move(spare_.front());
      spare_.pop_front();
    }
  }
  if (batch.block.bytes) spent = std::exchange(batch.block, {});
  batch.items.resize(LINES_AT_ONCE);
  batch.count = 0;
  return batch;
}

bool LinesAhead::hand_over(Batch batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_.size() < BATCHES_AHEAD || unwanted_; });
  ready_.push_back(std::move(batch));
  changed_.notify_all();
  return !unwanted_;
}

}  // namespace cudabpf::analyze
