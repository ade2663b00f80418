// Memory of the host in whole pages, so that the driver can be told of it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "util/result.hpp"

namespace cudabpf::replay {

class HostBuffer {
 public:
  HostBuffer() = default;
  static Result<HostBuffer> make(std::size_t size) {
    HostBuffer buffer;
    if (!size) return buffer;
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return errno_error("allocate memory");
    buffer.memory_ = static_cast<char*>(memory);
    buffer.size_ = size;
    return buffer;
  }
  HostBuffer(HostBuffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() {
    if (memory_) ::munmap(memory_, size_);
  }

  char* data() const { return memory_; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {memory_, size_}; }

 private:
  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cudabpf::replay
