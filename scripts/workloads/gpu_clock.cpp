// gpu_clock [--rounds N]: kernels that signal to the host when they have begun, and end when the
// host says so. Prints for each when the host launched it, saw that it had begun, let it end, and
// had waited for it: nanoseconds of CLOCK_MONOTONIC. Between the first two lies its beginning on
// the GPU, and between the last two its end.
#include <time.h>
#include <unistd.h>

#include "driver.hpp"

namespace {

long nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = option(argc, argv, "--rounds", 1000);
  Device device;
  CUfunction between = device.kernel("between");
  void* memory = nullptr;
  CHECK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr seen_by_gpu = 0;
  CHECK(cuMemHostGetDevicePointer(&seen_by_gpu, memory, 0));
  auto* end = static_cast<volatile unsigned*>(memory);
  volatile unsigned* began = end + 16;
  void* arguments[] = {&seen_by_gpu};
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (long i = 0; i < rounds; i++) {
    *end = *began = 0;
    __sync_synchronize();
    long launched = nanoseconds();
    CHECK(cuLaunchKernel(between, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    while (!*began) {
    }
    long seen = nanoseconds();
    usleep(i % 3 ? 20 : 500);
    long ends = nanoseconds();
    *end = 1;
    __sync_synchronize();
    CHECK(cuStreamSynchronize(stream));
    std::printf("%ld\t%ld\t%ld\t%ld\n", launched, seen, ends, nanoseconds());
  }
}
