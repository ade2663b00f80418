#include "trace/files/frames.hpp"

#include <stdexcept>

namespace cudabpf {

namespace {
constexpr std::uint64_t MAX_AGE_NS = 1'000'000'000;
constexpr std::size_t LARGE = 4 << 20;
}  // namespace

Frames::Frames(int level) : context_(ZSTD_createCCtx()) {
  if (!context_) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
}

void Frames::compress(std::string_view bytes, ZSTD_EndDirective directive) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (;;) {
    std::size_t used = bytes_.size();
    bytes_.resize(used + ZSTD_CStreamOutSize());
    ZSTD_outBuffer out{bytes_.data(), bytes_.size(), used};
    std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
    bytes_.resize(out.pos);
    if (ZSTD_isError(left)) throw std::runtime_error(ZSTD_getErrorName(left));
    if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return;
  }
}

void Frames::add(std::string_view lines, std::uint64_t count, std::uint64_t now_ns) {
  if (!open()) since_ns_ = now_ns;
  lines_ += count;
  size_ += lines.size();
  compress(lines, ZSTD_e_continue);
}

bool Frames::due(std::uint64_t now_ns) const {
  return open() && (now_ns - since_ns_ >= MAX_AGE_NS || bytes_.size() >= LARGE);
}

Frames::Frame Frames::close() {
  compress({}, ZSTD_e_end);
  Frame frame{std::move(bytes_), lines_, size_};
  bytes_.clear();
  lines_ = size_ = 0;
  return frame;
}

std::string Frames::frame_of(std::string_view lines) {
  std::string frame(ZSTD_compressBound(lines.size()), '\0');
  std::size_t size = ZSTD_compress(frame.data(), frame.size(), lines.data(), lines.size(), LEVEL);
  if (ZSTD_isError(size)) throw std::runtime_error(ZSTD_getErrorName(size));
  frame.resize(size);
  return frame;
}

}  // namespace cudabpf
