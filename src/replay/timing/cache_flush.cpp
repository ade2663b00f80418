#include "replay/timing/cache_flush.hpp"

#include <algorithm>
#include <string>

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

// As many instructions as no multiprocessor keeps, each of which needs the one before.
std::string much_code() {
  constexpr int INSTRUCTIONS = 16'384;  // of 16 bytes
  std::string code = R"(.version 7.0
.target sm_52
.address_size 64

.visible .entry cudabpf_run_much_code(.param .u64 memory)
{
  .reg .pred %p1;
  .reg .b32 %r<4>;
  .reg .b64 %rd1;

  ld.param.u64 %rd1, [memory];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %clock;
)";
  for (int i = 0; i < INSTRUCTIONS; i++) code += "  mad.lo.u32 %r1, %r1, %r2, %r3;\n";
  return code + R"(  setp.ne.u32 %p1, %r1, 305419896;
  @%p1 bra END;
  st.global.u32 [%rd1], %r1;
END:
  ret;
}
)";
}

}  // namespace

Handle CacheFlush::function_of(const char* code, const char* name) {
  Handle module = nullptr, function = nullptr;
  Status status = driver_->load_module.status_of(&module, code, 0, nullptr, nullptr);
  if (status.succeeded()) status = driver_->module_function.status_of(&function, module, name);
  return status.succeeded() ? function : nullptr;
}

Result<> CacheFlush::prepare(int device) {
  constexpr int MULTIPROCESSORS = 16, L2_SIZE = 38;  // CUdevice_attributes
  constexpr std::uint64_t LEAST = 1 << 20;
  int l2 = 0, multiprocessors = 0;
  TRY(driver_->device_attribute(&l2, L2_SIZE, device));
  TRY(driver_->device_attribute(&multiprocessors, MULTIPROCESSORS, device));
  size_ = std::max(LEAST, 2 * static_cast<std::uint64_t>(std::max(l2, 0)));
  multiprocessors_ = static_cast<std::uint32_t>(std::max(multiprocessors, 1));
  TRY(driver_->allocate(&memory_, size_));
  TRY(driver_->fill(memory_, 0, size_));
  reader_ = function_of(READ_MEMORY, "cudabpf_read_memory");
  if (reader_) other_code_ = function_of(much_code().c_str(), "cudabpf_run_much_code");
  return ok();
}

Status CacheFlush::run(Handle stream) {
  if (!reader_) return driver_->fill_8_async.status_of(memory_, 0, size_, stream);
  void* parameters[] = {&memory_, &size_};
  LaunchConfig config{
      {multiprocessors_ * BLOCKS_PER_MULTIPROCESSOR, 1, 1}, {THREADS, 1, 1}, 0, stream, nullptr, 0};
  return driver_->launch.status_of(&config, reader_, parameters, nullptr);
}

Status CacheFlush::run_all(Handle stream) {
  if (other_code_) {
    void* parameters[] = {&memory_};
    LaunchConfig config{{multiprocessors_, 1, 1}, {THREADS, 1, 1}, 0, stream, nullptr, 0};
    if (Status status = driver_->launch.status_of(&config, other_code_, parameters, nullptr);
        !status.succeeded())
      return status;
  }
  return run(stream);
}

}  // namespace cudabpf::replay
