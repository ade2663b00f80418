// Tells when any process on the machine maps a libcuda, by perf's mmap events: they come from every
// kernel, need no kprobe, and cost nothing between mappings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace cudabpf {

struct MappedLibrary {
  std::uint64_t ts = 0;  // CLOCK_MONOTONIC, when it was mapped
  std::uint32_t pid = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t device = 0;  // of the file itself, whatever lies over it
  std::uint64_t inode = 0;
  std::string path;  // as the process's own mount namespace names it
};

class MappingWatch {
 public:
  static Result<MappingWatch> open();

  MappingWatch(MappingWatch&&) = default;  // leaves no buffers behind
  MappingWatch& operator=(MappingWatch&&) = delete;
  ~MappingWatch();

  std::vector<int> fds() const;  // readable when there is something to read

  // Mappings of files named libcuda.so* since the last call; `overruns` counts those that the
  // kernel could not queue.
  std::vector<MappedLibrary> read(std::uint64_t& overruns);

 private:
  struct Buffer {
    Fd fd;
    void* memory = nullptr;
  };
  MappingWatch() = default;
  static void read_buffer(void* memory, std::vector<MappedLibrary>& found, std::uint64_t& overruns);

  std::vector<Buffer> buffers_;
};

// "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04", with or without a folder.
bool is_libcuda(std::string_view path);

}  // namespace cudabpf
