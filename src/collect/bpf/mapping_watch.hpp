// Reports when any process on the machine maps a libcuda, by perf's mmap events: every kernel has
// them, they need no kprobe, and they cost nothing between mappings.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "collect/mapping_records.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

class MappingWatch {
 public:
  static Result<MappingWatch> open();

  std::vector<int> fds() const;  // readable when there is something to read

  // Starts watching CPUs that have come online and stops watching those that have gone. Returns how
  // many came: something may have been mapped on them unseen.
  std::size_t renew();

  // What was mapped since the last call, but for code; `unnamed` includes what the kernel could not
  // queue.
  MappingsRead read();
  // The code that was mapped since the last call; another thread than that of read() may ask.
  struct Code {
    std::vector<MappedCode> mapped;
    bool lost = false;  // some of it is missing
  };
  Code read_code();

 private:
  struct Unmap {
    void operator()(void* memory) const;
  };
  using Memory = std::unique_ptr<void, Unmap>;
  struct Buffer {
    int cpu;
    Fd fd;
    Memory memory;            // null: the CPU cannot be watched
    bool counts_lost = true;  // read() of the event says how many were lost
    std::uint64_t lost = 0;   // how many of them have been reported
  };
  MappingWatch() = default;
  Result<> watch(int cpu);
  static void read_buffer(Buffer& buffer, MappingsRead& read);
  static std::uint64_t newly_lost(Buffer& buffer);

  void read_buffers();

  std::vector<Buffer> buffers_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of all of this
  MappingsRead unread_;
};

}  // namespace cudabpf
