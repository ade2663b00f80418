#include "analyze/report/packed.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace cudabpf::analyze {

namespace {

// In threes, so that only the last piece may end within a group of four digits.
class Base64 {
 public:
  explicit Base64(ByteStream& out) : out_(out) {}

  void add(const unsigned char* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i++) {
      group_ = group_ << 8 | bytes[i];
      if (++in_group_ == 3) put(4);
    }
  }
  void end() {
    if (!in_group_) return;
    std::size_t digits = in_group_ + 1;
    group_ <<= 8 * (3 - in_group_);
    put(digits);
  }

 private:
  void put(std::size_t digits) {
    static constexpr char DIGITS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char* at = out_.room(4);
    for (std::size_t i = 0; i < 4; i++)
      *at++ = i < digits ? DIGITS[group_ >> (18 - 6 * i) & 63] : '=';
    out_.wrote(at);
    group_ = 0;
    in_group_ = 0;
  }

  ByteStream& out_;
  std::uint32_t group_ = 0;
  std::size_t in_group_ = 0;
};

}  // namespace

void put_packed(ByteStream& out, std::string_view bytes) {
  constexpr int LEVEL = 4;  // higher ones take twice as long, and save a few percent
  constexpr std::size_t PIECE = std::size_t{1} << 20;
  z_stream stream{};
  if (::deflateInit(&stream, LEVEL) != Z_OK) throw std::bad_alloc();
  Base64 base64(out);
  std::array<unsigned char, 1 << 14> deflated;
  while (true) {
    std::string_view piece = bytes.substr(0, PIECE);
    bytes.remove_prefix(piece.size());
    // zlib does not write to its input, but says so only if it is asked to.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    int flush = bytes.empty() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = deflated.data();
      stream.avail_out = static_cast<uInt>(deflated.size());
      ::deflate(&stream, flush);
      base64.add(deflated.data(), deflated.size() - stream.avail_out);
    } while (!stream.avail_out);
    if (flush == Z_FINISH) break;
  }
  ::deflateEnd(&stream);
  base64.end();
}

}  // namespace cudabpf::analyze
