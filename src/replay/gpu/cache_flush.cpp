#include "replay/gpu/cache_flush.hpp"

#include <algorithm>

#include "replay/gpu/own_kernels.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::uint32_t THREADS = 256, BLOCKS_PER_MULTIPROCESSOR = 8;

}  // namespace

Result<> CacheFlush::prepare(int device) {
  constexpr int MULTIPROCESSORS = 16, L2_SIZE = 38;  // CUdevice_attributes
  constexpr std::uint64_t LEAST = 1 << 20;
  int l2 = 0, multiprocessors = 0;
  TRY(driver_->device_attribute(&l2, L2_SIZE, device));
  TRY(driver_->device_attribute(&multiprocessors, MULTIPROCESSORS, device));
  size_ = std::max(LEAST, 2 * static_cast<std::uint64_t>(std::max(l2, 0)));
  blocks_ = static_cast<std::uint32_t>(std::max(multiprocessors, 1)) * BLOCKS_PER_MULTIPROCESSOR;
  TRY(driver_->allocate(&memory_, size_));
  TRY(driver_->fill(memory_, 0, size_));
  reader_ = OwnKernels::load(*driver_).read_memory;
  return ok();
}

Status CacheFlush::run(Handle stream) {
  if (!reader_) return driver_->fill_8_async.status_of(memory_, 0, size_, stream);
  void* parameters[] = {&memory_, &size_};
  LaunchConfig config{{blocks_, 1, 1}, {THREADS, 1, 1}, 0, stream, nullptr, 0};
  return driver_->launch.status_of(&config, reader_, parameters, nullptr);
}

}  // namespace cudabpf::replay
