#include "cli/merged_file.hpp"

#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "trace/files/frames.hpp"
#include "trace/files/trace_file.hpp"
#include "util/exit_codes.hpp"
#include "util/system/clock.hpp"

namespace cudabpf::cli {

namespace {

class MergedFile {
 public:
  static Result<MergedFile> create(const std::string& path) {
    auto file = path == "-" ? TraceFile::stream(Fd(::dup(STDOUT_FILENO)))
                            : TRY(TraceFile::create(path, true));
    return MergedFile(std::move(file), path.ends_with(".zst"));
  }

  // False: it could not be written, and errno says why.
  bool add(std::string_view lines) {
    if (!compresses_) return file_.append_lines(lines) == lines.size();
    frames_.add(lines, 1, now_ns(CLOCK_MONOTONIC));
    return !frames_.due(now_ns(CLOCK_MONOTONIC)) || close_frame();
  }
  bool finish() { return (!frames_.open() || close_frame()) && file_.finish(); }
  std::uint64_t size() const { return file_.size(); }

 private:
  MergedFile(TraceFile file, bool compresses) : file_(std::move(file)), compresses_(compresses) {}
  bool close_frame() { return file_.append_whole(frames_.close().bytes); }

  TraceFile file_;
  bool compresses_;
  Frames frames_;
};

}  // namespace

Result<std::uint64_t> write_merge(merge::Merger& merger, const std::string& path) {
  MergedFile file = TRY(MergedFile::create(path));
  auto removed = [&](Error error) {
    if (path != "-") std::remove(path.c_str());
    return error;
  };
  std::string lines;
  for (;;) {
    lines.clear();
    auto more = merger.next(lines);
    if (!more) return removed(more.error());
    if (*more ? !file.add(lines) : !file.finish())
      return removed(errno_error("cannot write the merge to " + path, "what was written is removed",
                                 exit_code::OUTPUT_FAILED));
    if (!*more) return file.size();
  }
}

}  // namespace cudabpf::cli
