// The file that a trace is written to, or stdout. Its lines are whole, whatever fails.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// As a trace's path: keeps nothing, for measurements.
inline constexpr const char* NULL_DEVICE = "/dev/null";

// Whether so little is left on a disk that nothing may go on filling it without being asked.
bool is_low(const std::filesystem::space_info& space);
// The space on the disk that a file is on, or will be; nothing: it is not known.
std::optional<std::filesystem::space_info> space_for(const std::string& path);

class TraceFile {
 public:
  // Creates the file. An existing one is replaced if `may_replace` and it is a regular file;
  // nothing else is touched, since the writer may be root and the folder another user's.
  // /dev/stdout and /dev/fd/N mean what this process has open there, as with stream(); /dev/null
  // takes everything.
  static Result<TraceFile> create(const std::string& path, bool may_replace, int hurry_fd = -1);
  // Writes to something open that cannot be truncated: a pipe, a terminal. Waits until it takes
  // what is written, but not for much longer once `hurry_fd` is readable.
  static TraceFile stream(Fd fd, int hurry_fd = -1);

  // Appends whole lines. Returns how many bytes, again of whole lines, are written for good. If
  // those are fewer than `bytes` has, writing failed, and errno says why.
  std::size_t append_lines(std::string_view bytes);
  // Appends all of `bytes` or nothing.
  bool append_whole(std::string_view bytes);
  // Writes the rest of a line that append_lines() left half written on a stream. False: that line
  // stays cut.
  bool finish();

  std::uint64_t size() const { return size_; }
  bool is_stream() const { return !can_cut_; }
  bool gave_up() const { return gave_up_; }  // a stream took nothing for too long

 private:
  static Result<TraceFile> null_device();
  TraceFile(Fd fd, bool can_cut) : fd_(std::move(fd)), can_cut_(can_cut) {}
  bool wait_for_reader();
  std::size_t write_some(std::string_view bytes);
  std::size_t keep(std::size_t size);

  Fd fd_;
  bool can_cut_;
  std::uint64_t size_ = 0;   // of whole lines
  std::string rest_;         // of a line that a stream took only part of
  std::size_t at_once_ = 0;  // bytes that a stream takes without blocking, if it takes any
  int hurry_fd_ = -1;
  std::uint64_t took_ns_ = 0, hurried_ns_ = 0;  // when it last took something; when the hurry began
  bool gave_up_ = false;
};

// Creates the folder of `path` if it is missing. Root follows no link there that another user made.
Result<> make_parent_folder(const std::string& path);

}  // namespace cudabpf
