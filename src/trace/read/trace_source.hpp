// A trace file's bytes, plain or compressed, as blocks of whole lines. A separate thread reads and
// decompresses, a few blocks ahead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::analyze {

// How many bytes editors put before a trace's first line: a byte order mark, blank lines.
std::size_t preamble(std::string_view text);
// How messages name a trace's path: "standard input" for "-".
std::string input_name(const std::string& path);

// Opens a trace's file; "-": standard input.
Result<Fd> open_trace_file(const std::string& path);

class TraceSource {
 public:
  // No real line comes near this: a longer one must not take all memory.
  static constexpr std::size_t MAX_LINE = std::size_t{16} << 20;

  // Refuses what cannot be a trace, and says what it seems to be. Messages call it `name`.
  static Result<std::unique_ptr<TraceSource>> open(Fd fd, const std::string& name);
  ~TraceSource();
  TraceSource(const TraceSource&) = delete;
  TraceSource& operator=(const TraceSource&) = delete;

  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size = 0;      // whole lines, except for what a file ends with
    std::size_t capacity = 0;  // at least LineParser::PADDING more
  };
  // False: there are no more. Within a line that is too long, and while a compressed file has no
  // text, blocks come that are empty.
  bool next(Block& block);
  // No more blocks are wanted: next() waits no longer.
  void give_up();

  // Why data is missing at the end: a compressed file ended within a frame, or could not be read
  // further. Known once next() has returned false.
  const std::string& broken() const { return broken_; }
  // It ended within a frame, which may still be written.
  bool ends_in_frame() const { return ends_in_frame_; }

  // For showing progress: how much of the file has been read. Its size is 0 if not known.
  std::uint64_t read() const;
  std::uint64_t file_size() const { return file_size_; }

 private:
  TraceSource(Fd fd, std::uint64_t file_size, bool compressed);

  void run();
  void read_plain();
  void read_compressed();
  // Reads what the file has next; 0: nothing more.
  std::size_t fill(char* to, std::size_t size);
  char* room(std::size_t wanted);  // at the end of the block that is being filled
  void filled(std::size_t size);
  bool hand_over(bool at_end);  // false: no more are wanted
  void hand_over_nothing();

  Fd fd_;
  std::uint64_t file_size_;
  bool compressed_;
  std::string head_;  // read to see what the file is

  Block filling_;
  std::size_t line_end_ = 0;  // after the last newline in it

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ready_;
  std::deque<Block> spare_;
  std::uint64_t read_ = 0;
  bool done_ = false;
  bool unwanted_ = false;
  std::string broken_;
  bool ends_in_frame_ = false;
  std::thread thread_;
};

}  // namespace cudabpf::analyze
