// The folder that is served: which traces are in it, and their files, of which nothing else can be
// opened. A trace lies in the folder itself or in one of its subfolders.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::serve {

// What distinguishes a file from what it was before, and from another of its name.
struct Stamp {
  std::uint64_t device = 0, inode = 0, size = 0, modified = 0;  // modified: ns since 1970

  static Stamp of(const struct stat& file);
  bool operator==(const Stamp&) const = default;
};

struct FoundTrace {
  std::string name;                // of its first file, below the folder: "run/t.0001.jsonl"
  std::vector<std::string> files;  // all of a rotated trace, in order
  std::vector<Stamp> stamps;       // a file each

  std::uint64_t size() const;
  std::uint64_t modified() const;  // the latest
  // Without its `end`, a trace is being written, or its capture was killed: only this shows which.
  bool was_just_written() const;
};

struct Contents {
  std::vector<FoundTrace> traces;   // by name
  std::uint64_t left_out = 0;       // beyond those that are looked at or listed; a folder is one
  std::vector<std::string> unread;  // subfolders that could not be read
};

class Folder {
 public:
  // How a file is kept within the folder. Kernels before 5.6 have no openat2, and some containers
  // refuse it: then each part of a path is opened by itself, and no part may be a link.
  enum class By : std::uint8_t { openat2, parts };
  static constexpr std::size_t MAX_ENTRIES = 20'000, MAX_TRACES = 2'000;

  static Result<Folder> open(const std::string& path);
  // Only for tests: the other way than the one that works.
  void open_by(By by) { by_ = by; }

  Result<Contents> contents() const;
  // A regular file of contents(). Links are not followed, and what is no regular file is not read.
  Result<Fd> open_file(const std::string& file) const;

 private:
  explicit Folder(Fd fd) : fd_(std::move(fd)) {}

  Fd open_below(const std::string& path, int flags) const;  // errno says why there is none

  Fd fd_;
  By by_ = By::openat2;
};

// Whether a file of this name is taken for a trace: t.jsonl, t.jsonl.zst.
bool is_trace_name(std::string_view name);

}  // namespace cudabpf::serve
