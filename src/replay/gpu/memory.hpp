// The capture's memory, at the addresses that it had in the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/layout.hpp"
#include "replay/messages.hpp"
#include "replay/progress.hpp"

namespace cudabpf::replay {

class GpuMemory {
 public:
  GpuMemory(const Driver& driver, Progress& progress) : driver_(&driver), progress_(&progress) {}

  // Takes the addresses. To be called right after the driver's init(): whatever else is mapped
  // could take them. The driver gives others if these are not to be had, and says nothing: those
  // are returned.
  Result<std::vector<Addresses>> take(const Layout& layout);
  // Puts memory behind them. A context is current.
  Result<> back(int device);

  // What the memory held before the iteration; where that is not known, `unknown`.
  Result<> load(const bundle::Folder& folder, unsigned char unknown);
  // The same only for pages that the iteration may have changed.
  Result<> restore(const bundle::Folder& folder, unsigned char unknown);

  // Reads a page of a GPU. It is there until the next one is read.
  Result<std::string_view> page(std::uint64_t address);
  const Layout& layout() const { return layout_; }
  // Pinned memory between a GPU's is on the GPU now: it holds the same, but is faster.
  bool are_moved_to_gpu() const { return are_moved_to_gpu_; }

 private:
  Result<> back_range(const Range& range, int device, const MemoryProperties& properties);
  Result<> back_pinned(const Range& range, int device);
  Result<> take_host(std::vector<Addresses>& moved);
  Result<> load_page(const bundle::Folder& folder, std::uint64_t address, unsigned char unknown);
  Result<> load_host(const bundle::Folder& folder, unsigned char unknown);

  const Driver* driver_;
  Progress* progress_;
  Layout layout_;
  bool are_moved_to_gpu_ = false;
  struct Freed {
    void operator()(char* memory) const { std::free(memory); }  // NOLINT: it is aligned
  };
  std::unique_ptr<char, Freed> staging_;  // one page, which copies go through
};

// A place in pinned memory, which is mapped where the program had it.
char* at_host(std::uint64_t address);
// All of the machine's, as a bound for what a folder may ask for.
std::uint64_t host_memory();

}  // namespace cudabpf::replay
