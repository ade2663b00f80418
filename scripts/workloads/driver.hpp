// What the programs here that use the driver API share: checks, a context, kernels in PTX, options.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

inline void check(CUresult result, const char* call, int line) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "line %d: %s: %s\n", line, call, name ? name : "?");
  std::exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

// nothing(); bump(where): adds one to each of 32 numbers; wait(flag): spins until *flag is not 0;
// between(words): sets words[16] to 1, then spins until words[0] is not 0; spin(ns): spins for so
// long.
inline const char* KERNELS = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry bump(.param .u64 where) {
  .reg .b64 %p<4>; .reg .b32 %r<2>;
  ld.param.u64 %p1, [where];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %p2, %r1, 4;
  add.u64 %p3, %p1, %p2;
  red.global.add.u32 [%p3], 1;
  ret;
}
.visible .entry wait(.param .u64 flag) {
  .reg .b64 %p<2>; .reg .b32 %r<2>; .reg .pred %q;
  ld.param.u64 %p1, [flag];
again:
  ld.volatile.global.u32 %r1, [%p1];
  setp.eq.u32 %q, %r1, 0;
  @%q bra again;
  ret;
}
.visible .entry between(.param .u64 words) {
  .reg .b64 %p<2>; .reg .b32 %r<2>; .reg .pred %q;
  ld.param.u64 %p1, [words];
  st.volatile.global.u32 [%p1+64], 1;
  membar.sys;
again:
  ld.volatile.global.u32 %r1, [%p1];
  setp.eq.u32 %q, %r1, 0;
  @%q bra again;
  ret;
}
.visible .entry spin(.param .u64 ns) {
  .reg .b64 %t<4>; .reg .pred %q;
  ld.param.u64 %t3, [ns];
  mov.u64 %t1, %globaltimer;
  add.u64 %t3, %t1, %t3;
again:
  mov.u64 %t2, %globaltimer;
  setp.lt.u64 %q, %t2, %t3;
  @%q bra again;
  ret;
}
)";

// The first device's primary context, current on the calling thread, with the kernels loaded.
class Device {
 public:
  Device() {
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device_, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context_, device_));
    use();
    CHECK(cuModuleLoadData(&module_, KERNELS));
  }
  ~Device() {
    CHECK(cuModuleUnload(module_));
    CHECK(cuDevicePrimaryCtxRelease(device_));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void use() const { CHECK(cuCtxSetCurrent(context_)); }  // on another thread
  CUdevice number() const { return device_; }
  CUcontext context() const { return context_; }
  CUfunction kernel(const char* name) const {
    CUfunction function;
    CHECK(cuModuleGetFunction(&function, module_, name));
    return function;
  }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

// The value after `--name` among the arguments.
inline long option(int argc, char** argv, const char* name, long otherwise) {
  for (int i = 1; i + 1 < argc; i++)
    if (std::strcmp(argv[i], name) == 0) return std::atol(argv[i + 1]);
  return otherwise;
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline double time_of_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}
