#include "replay/gpu/cache_flush.hpp"

#include <algorithm>

namespace cudabpf::replay {

namespace {

constexpr std::uint32_t THREADS = 256, BLOCKS_PER_MULTIPROCESSOR = 8;

// Each thread reads 16 bytes here and there, all over the memory. So that the compiler leaves that
// in, a sum that no memory of zeroes has would be written.
constexpr const char* READ_MEMORY = R"(.version 7.0
.target sm_52
.address_size 64

.visible .entry cudabpf_read_memory(.param .u64 memory, .param .u64 size)
{
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;

  ld.param.u64 %rd1, [memory];
  ld.param.u64 %rd2, [size];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r5, %r5, %r2;
  mul.wide.u32 %rd3, %r4, 16;
  mul.wide.u32 %rd4, %r5, 16;
  mov.u32 %r9, 0;
READ:
  setp.ge.u64 %p1, %rd3, %rd2;
  @%p1 bra DONE;
  add.u64 %rd5, %rd1, %rd3;
  ld.global.v2.u64 {%rd6, %rd7}, [%rd5];
  cvt.u32.u64 %r6, %rd6;
  cvt.u32.u64 %r7, %rd7;
  add.u32 %r9, %r9, %r6;
  add.u32 %r9, %r9, %r7;
  add.u64 %rd3, %rd3, %rd4;
  bra READ;
DONE:
  setp.ne.u32 %p2, %r9, 305419896;
  @%p2 bra END;
  st.global.u32 [%rd1], %r9;
END:
  ret;
}
)";

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
  Handle module = nullptr;
  Status status = driver_->load_module.status_of(&module, READ_MEMORY, 0, nullptr, nullptr);
  if (status.succeeded())
    status = driver_->module_function.status_of(&reader_, module, "cudabpf_read_memory");
  if (!status.succeeded()) reader_ = nullptr;
  return ok();
}

Status CacheFlush::run(Handle stream) {
  if (!reader_) return driver_->fill_8_async.status_of(memory_, 0, size_, stream);
  void* parameters[] = {&memory_, &size_};
  LaunchConfig config{{blocks_, 1, 1}, {THREADS, 1, 1}, 0, stream, nullptr, 0};
  return driver_->launch.status_of(&config, reader_, parameters, nullptr);
}

}  // namespace cudabpf::replay
