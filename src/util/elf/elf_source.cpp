// Where a library's bytes come from: memory or a file.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/elf/elf.hpp"

namespace cudabpf::elf {

namespace {

class MemorySource : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : Source(bytes.size()), bytes_(bytes) {}
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), out.size(), out.begin());
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

class FileSource : public Source {
 public:
  FileSource(int fd, std::uint64_t size) : Source(size), fd_(fd) {}
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset) return false;
    if (out.size() > sizeof page_) return fill(offset, out) == out.size();
    // Headers are read one after the other, so one page serves several.
    if (offset < page_at_ || offset + out.size() > page_at_ + page_size_) {
      page_at_ = offset;
      page_size_ = fill(offset, page_);
    }
    if (offset + out.size() > page_at_ + page_size_) return false;
    std::copy_n(page_ + (offset - page_at_), out.size(), out.begin());
    return true;
  }

 private:
  std::size_t fill(std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t got = 0;
    while (got < out.size()) {
      ssize_t more =
          pread(fd_, out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    return got;
  }

  int fd_;
  mutable std::byte page_[4096];
  mutable std::uint64_t page_at_ = 0;
  mutable std::size_t page_size_ = 0;
};

}  // namespace

std::shared_ptr<const Source> bytes_in_memory(std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(bytes);
}

std::shared_ptr<const Source> bytes_of_file(int fd, std::uint64_t size) {
  return std::make_shared<FileSource>(fd, size);
}

}  // namespace cudabpf::elf
