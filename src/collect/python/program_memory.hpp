// A program's memory, read from outside. What is there is hostile, and may change at any time.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace cudabpf {

class ProgramMemory {
 public:
  virtual ~ProgramMemory() = default;
  // Reads all of it, or returns false.
  virtual bool read(std::uint64_t address, std::span<std::byte> to) const = 0;

  template <typename T>
  std::optional<T> value(std::uint64_t address) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T read_value{};
    if (!read(address, std::as_writable_bytes(std::span(&read_value, 1)))) return std::nullopt;
    return read_value;
  }
};

// The memory of a process that this thread may trace.
class ProcessMemory final : public ProgramMemory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  bool read(std::uint64_t address, std::span<std::byte> to) const override {
    iovec here{to.data(), to.size()};
    iovec there{reinterpret_cast<void*>(address), to.size()};  // NOLINT(performance-no-int-to-ptr)
    return process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(to.size());
  }

 private:
  pid_t pid_;
};

}  // namespace cudabpf
