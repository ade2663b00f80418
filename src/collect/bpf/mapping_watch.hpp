// Tells when any process on the machine maps a libcuda, by perf's mmap events: they come from every
// kernel, need no kprobe, and cost nothing between mappings.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collect/mapping_records.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

class MappingWatch {
 public:
  static Result<MappingWatch> open();

  std::vector<int> fds() const;  // readable when there is something to read

  // Watches CPUs that have come online since, too, and no longer those that went. The answer: how
  // many came, on which something may have been mapped unseen.
  std::size_t renew();

  // Mappings of files named libcuda.so* since the last call; `overruns` counts those that the
  // kernel could not queue or name.
  std::vector<MappedLibrary> read(std::uint64_t& overruns);

 private:
  struct Unmap {
    void operator()(void* memory) const;
  };
  using Memory = std::unique_ptr<void, Unmap>;
  struct Buffer {
    int cpu;
    Fd fd;
    Memory memory;            // null: it cannot be watched
    bool counts_lost = true;  // so that read() of the event says how many
    std::uint64_t lost = 0;   // of them already reported
  };
  MappingWatch() = default;
  Result<> watch(int cpu);
  static void read_buffer(Buffer& buffer, MappingsRead& read);
  static std::uint64_t newly_lost(Buffer& buffer);

  std::vector<Buffer> buffers_;
};

}  // namespace cudabpf
