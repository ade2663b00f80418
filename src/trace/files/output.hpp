// Where a trace's lines go: a file, a series of files (rotation), a compressed file, or stdout. A
// separate thread writes, so that a slow disk does not hold up reading the ring; when the writer is
// far behind, take() waits, the ring fills, and the loss is counted there, in one place.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trace/files/block_queue.hpp"
#include "trace/files/frames.hpp"
#include "trace/files/trace_file.hpp"
#include "trace/files/trace_output.hpp"
#include "util/result.hpp"

namespace cudabpf {

struct OutputOptions {
  std::string path;  // "-": stdout; ends in ".zst": compressed
  // cudabpf chose the path: it creates the folder, and puts the trace beside a file that exists.
  bool own_choice = false;
  bool rotates = false;
  // Which rotated files to keep, counting those of earlier traces: this many of the newest, and
  // this many bytes of them, to which the file being written may add `file_bytes`. 0: all.
  unsigned keep = 0;
  std::uint64_t keep_bytes = 0, file_bytes = 0;
  bool logs = false;                       // says when a file is complete, and when one is deleted
  std::uint64_t retry_ns = 1'000'000'000;  // after writing failed
  int stream = -1;                         // write to this instead of `path`; the caller owns it
  int hurry_fd = -1;  // once readable, the stream's reader is not waited for much longer
};

class Output : public TraceOutput {
 public:
  static Result<std::unique_ptr<Output>> open(OutputOptions options);
  ~Output() override;

  void start(std::string header, const FilePart& part, std::uint64_t trace_start_ns) override;
  LineBlock take() override { return blocks_.take(); }
  void put(LineBlock block) override { blocks_.put(std::move(block)); }
  void stop() override;
  double compression() const override { return compression_; }

  bool compresses() const { return compresses_; }
  std::uint64_t lost() const { return lost_; }  // lines, so far

  bool reader_gone() const { return closed_; }  // the pipe has no reader any more

  std::uint64_t bytes() const { return bytes_out_; }  // in all files, so far
  // What is left on the file system that it writes to; nothing if that is not known.
  std::optional<std::filesystem::space_info> space() const;

  // After stop().
  bool ended() const { return ended_; }           // the last line is in the file
  std::uint64_t lines() const { return lines_; }  // in all files
  unsigned files() const { return files_; }
  const std::string& path() const { return path_; }  // of the last file

 private:
  Output(OutputOptions options, bool compresses);

  // What could not be written since the last write that succeeded.
  struct Gap {
    std::uint64_t count = 0;
    std::uint64_t since_ns = 0;
  };

  Result<> open_file();
  std::string new_path() const;
  void delete_old() const;
  void run();
  void accept(const LineBlock& block);
  void close_frame();
  void deliver(std::string_view bytes, std::uint64_t lines, bool divisible);
  bool ready(bool at_once);
  bool catch_up();
  bool put_line(const std::string& line);
  void wrote(std::size_t bytes, std::uint64_t lines);
  void lose(std::uint64_t lines);
  void failed();
  void end_file(const LineBlock::FileEndsHere& file_end);
  std::uint64_t since_start() const;

  const OutputOptions options_;
  const bool compresses_;
  std::uint64_t trace_start_ns_ = 0;

  BlockQueue blocks_;
  std::thread writer_;

  // Used by the writer thread.
  std::optional<TraceFile> file_;
  Frames frames_;
  std::string path_;
  unsigned taken_ = 0;  // how many names that the trace's files would have had were taken
  FilePart part_;
  std::string header_;  // of this file; empty once written
  Gap gap_;
  std::uint64_t retry_at_ns_ = 0;  // 0: nothing is wrong
  bool warned_ = false;
  bool ended_ = false;
  std::uint64_t lines_in_file_ = 0, lost_in_file_ = 0, bytes_in_file_ = 0;
  std::uint64_t lines_ = 0;
  unsigned files_ = 0;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> bytes_out_{0};
  std::uint64_t framed_in_ = 0, framed_out_ = 0;
  std::atomic<double> compression_{1};
};

// A trace of its own beside one of that name. "t.jsonl.zst", 2 -> "t-2.jsonl.zst"; 1: the name
// itself.
std::string numbered_path(const std::string& path, unsigned number);
// A part of it. "t.jsonl.zst", 2 -> "t.0002.jsonl.zst". In a file's name, `begun` takes the place
// of %t, if that is there: a time as file_timestamp() writes it.
std::string rotated_path(const std::string& path, unsigned number, const std::string& begun = {});
struct RotatedFile {
  unsigned number = 0;
  std::string path;
};
// Those that exist, by number.
std::vector<RotatedFile> rotated_files(const std::string& path);

}  // namespace cudabpf
