#include "trace/files/kept_parts.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf {

namespace {

void add_counts(EventCounts& sum, const EventCounts& counts) {
  sum.calls += counts.calls;
  sum.unfinished += counts.unfinished;
  sum.driver_calls += counts.driver_calls;
  sum.read_faults += counts.read_faults;
}

// What is kept for long must not take unused room.
std::shared_ptr<const std::string> to_keep(std::string bytes) {
  bytes.shrink_to_fit();
  return std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace

void KeptParts::start(std::string header, const FilePart& part, std::uint64_t) {
  begin_part(header, part.since);
  thread_ = thread_without_signals([this] { run(); });
}

void KeptParts::stop() {
  if (!thread_.joinable()) return;
  blocks_.close();
  thread_.join();
}

void KeptParts::run() {
  privileges::keep_only({});
  while (!blocks_.is_done()) {
    auto block = blocks_.next(std::nullopt);
    if (!block) continue;
    accept(*block);
    blocks_.give_back(std::move(*block));
  }
}

void KeptParts::accept(const LineBlock& block) {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  if (block.lines) frames_.add({block.bytes.get(), block.size}, block.lines, now);
  if (frames_.due(now)) close_frame();
  if (block.file_end) end_part(*block.file_end);
}

void KeptParts::begin_part(std::string_view header, std::uint64_t since) {
  Kept& part = parts_.emplace_back();
  part.since = since;
  part.header = to_keep(Frames::frame_of(header));
  part.header_lines = static_cast<std::uint64_t>(std::count(header.begin(), header.end(), '\n'));
  keep(part, part.header->size());
}

void KeptParts::close_frame() {
  if (!frames_.open()) return;
  Frames::Frame frame = frames_.close();
  framed_in_ += frame.size;
  framed_out_ += frame.bytes.size();
  compression_ = static_cast<double>(framed_out_) / static_cast<double>(framed_in_);
  Kept& part = parts_.back();
  part.lines += frame.lines;
  part.frames.push_back(to_keep(std::move(frame.bytes)));
  keep(part, part.frames.back()->size());
}

// Adds this many bytes to the part; the oldest parts may have to go.
void KeptParts::keep(Kept& part, std::uint64_t bytes) {
  part.bytes += bytes;
  bytes_ += bytes;
  while (bytes_ > options_.most_bytes && parts_.size() > 1) {
    drop_oldest();
    cut_ = true;
  }
}

void KeptParts::drop_oldest() {
  bytes_ -= parts_.front().bytes;
  parts_.pop_front();
}

void KeptParts::end_part(const LineBlock::FileEndsHere& end) {
  close_frame();
  parts_.back().totals = end.end.totals;
  std::uint64_t until = end.end.part.since + end.end.totals.duration_ns;
  while (parts_.size() > 1 && until - parts_[1].since >= options_.keep_ns) {
    drop_oldest();
    cut_ = false;
  }
  if (!end.write.because.empty()) wanted_(all(end.write));
  if (!end.next_header.empty()) begin_part(end.next_header, end.next.since);
}

// All parts have ended.
KeptTrace KeptParts::all(const LineBlock::WriteKept& write) const {
  KeptTrace kept;
  kept.because = write.because;
  kept.since = parts_.front().since;
  kept.cut = cut_;
  kept.frames.push_back(parts_.front().header);
  kept.lines = parts_.front().header_lines;
  for (const Kept& part : parts_) {
    kept.frames.insert(kept.frames.end(), part.frames.begin(), part.frames.end());
    kept.events += part.lines;
    add_counts(kept.totals.counts, part.totals.counts);
    kept.totals.duration_ns += part.totals.duration_ns;
    for (std::size_t i = 0; i < LOSS_COUNT; i++) kept.totals.losses[i] += part.totals.losses[i];
  }
  if (!write.unfinished.empty()) kept.frames.push_back(to_keep(Frames::frame_of(write.unfinished)));
  add_counts(kept.totals.counts, write.counts);
  kept.events += write.counts.calls;
  kept.lines += kept.events;
  return kept;
}

}  // namespace cudabpf
