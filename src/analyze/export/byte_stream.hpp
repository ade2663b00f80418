// Gathers what an export writes, and hands it on in large pieces.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>

namespace cudabpf::analyze {

class ByteStream {
 public:
  // False: writing failed, and no more will be taken.
  using Write = std::function<bool(std::string_view)>;

  explicit ByteStream(Write write) : write_(std::move(write)) {}

  // Memory for `size` bytes; wrote() then says how much of it was used.
  char* room(std::size_t size) {
    if (capacity_ - size_ < size) [[unlikely]]
      make_room(size);
    return bytes_.get() + size_;
  }
  void wrote(const char* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }

  void text(std::string_view text) {
    if (text.empty()) return;  // its data() may be null
    char* at = room(text.size());
    std::memcpy(at, text.data(), text.size());
    size_ += text.size();
  }
  template <typename Integer>
  void number(Integer value) {
    constexpr std::size_t LONGEST = 20;
    char* at = room(LONGEST);
    wrote(std::to_chars(at, at + LONGEST, value).ptr);
  }

  // Hands on what has been gathered.
  void flush() {
    total_ += size_;
    if (size_ && !failed_) failed_ = !write_({bytes_.get(), size_});
    size_ = 0;
  }
  bool failed() const { return failed_; }
  std::uint64_t size() const { return total_ + size_; }  // of everything so far

 private:
  static constexpr std::size_t PIECE = std::size_t{1} << 18;

  void make_room(std::size_t size) {
    flush();
    if (size <= capacity_) return;
    capacity_ = std::max(size, PIECE);
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }

  Write write_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0, size_ = 0;
  std::uint64_t total_ = 0;
  bool failed_ = false;
};

}  // namespace cudabpf::analyze
