#include "replay/gpu/own_kernels.hpp"

namespace cudabpf::replay {

namespace {

// read_memory: each thread reads 16 bytes here and there, all over the memory. So that the compiler
// leaves that in, a sum that no memory of zeroes has would be written.
constexpr const char* CODE = R"(.version 7.0
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

.visible .entry cudabpf_nothing()
{
  ret;
}
)";

}  // namespace

OwnKernels OwnKernels::load(const Driver& driver) {
  OwnKernels kernels;
  Handle module = nullptr;
  if (!driver.load_module.status_of(&module, CODE, 0, nullptr, nullptr).succeeded()) return kernels;
  auto find = [&](Handle& kernel, const char* name) {
    if (!driver.module_function.status_of(&kernel, module, name).succeeded()) kernel = nullptr;
  };
  find(kernels.read_memory, "cudabpf_read_memory");
  find(kernels.nothing, "cudabpf_nothing");
  return kernels;
}

}  // namespace cudabpf::replay
