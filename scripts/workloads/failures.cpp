// failures memory|fault|hang [--seconds N]: a program that goes wrong.
//   memory  requests more than any GPU has, again and again
//   fault   a kernel writes to an unmapped address; every call after it fails
//   hang    a kernel ends only after N seconds; without --seconds the program waits until it is
//   killed
// Its status is 0 if it went wrong as it should.
#include <thread>

#include "driver.hpp"

namespace {

int memory() {
  CUdeviceptr address = 0;
  for (int i = 0; i < 3; i++)
    if (cuMemAlloc(&address, std::size_t{1} << 46) != CUDA_ERROR_OUT_OF_MEMORY) return 1;
  return 0;
}

int fault(const Device& device) {
  CUdeviceptr nowhere = 0x10;
  void* arguments[] = {&nowhere};
  CHECK(cuLaunchKernel(device.kernel("bump"), 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  if (cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS) return 1;
  return cuMemAlloc(&nowhere, 4096) == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1;
}

int hang(const Device& device, long seconds) {
  void* shared = nullptr;
  CUdeviceptr flag = 0;
  CHECK(cuMemHostAlloc(&shared, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* released = static_cast<volatile unsigned*>(shared);
  *released = 0;
  CHECK(cuMemHostGetDevicePointer(&flag, shared, 0));
  void* arguments[] = {&flag};
  CHECK(cuLaunchKernel(device.kernel("wait"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  std::thread releasing;
  if (seconds)
    releasing = std::thread([=] {
      std::this_thread::sleep_for(std::chrono::seconds(seconds));
      *released = 1;
    });
  CHECK(cuStreamSynchronize(nullptr));
  if (releasing.joinable()) releasing.join();
  CHECK(cuMemFreeHost(shared));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "memory") == 0) {
    Device device;
    return memory();
  }
  if (std::strcmp(what, "fault") == 0) {
    auto* device = new Device;  // never cleaned up: after a fault that fails like everything else
    return fault(*device);
  }
  if (std::strcmp(what, "hang") == 0) {
    Device device;
    return hang(device, option(argc, argv, "--seconds", 0));
  }
  std::fprintf(stderr, "usage: failures memory|fault|hang [--seconds N]\n");
  return 2;
}
