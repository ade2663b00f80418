// Compresses lines into zstd frames. A frame holds whole lines and stands alone, so a file that was
// cut off can be read up to its last whole frame.
#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cudabpf {

class Frames {
 public:
  static constexpr int LEVEL = 3;  // of zstd, for files
  explicit Frames(int level = LEVEL);

  void add(std::string_view lines, std::uint64_t count, std::uint64_t now_ns);
  bool due(std::uint64_t now_ns) const;  // the open frame is a second old, or large enough
  bool open() const { return lines_ > 0; }

  struct Frame {
    std::string bytes;
    std::uint64_t lines = 0;
    std::uint64_t size = 0;  // of the lines, uncompressed
  };
  Frame close();  // the open frame, complete

  static std::string frame_of(std::string_view lines);

 private:
  void compress(std::string_view bytes, ZSTD_EndDirective directive);

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::string bytes_;
  std::uint64_t lines_ = 0, size_ = 0;
  std::uint64_t since_ns_ = 0;
};

}  // namespace cudabpf
