// copies [--rounds N] [--bytes N]: makes every kind of copy and fills memory in every way, in every
// direction, at once and queued; at the end copies once to a second GPU and back, if there is one.
#include <vector>

#include "driver.hpp"

namespace {

struct Memory {
  std::size_t bytes;
  CUdeviceptr a = 0, b = 0;
  CUarray array = nullptr, array_b = nullptr;
  void* pinned = nullptr;
  std::vector<char> pageable;
  CUstream stream = nullptr;

  explicit Memory(std::size_t bytes) : bytes(bytes), pageable(bytes) {
    CHECK(cuMemAlloc(&a, bytes));
    CHECK(cuMemAlloc(&b, bytes));
    CHECK(cuMemHostAlloc(&pinned, bytes, 0));
    std::memset(pinned, 1, bytes);
    CUDA_ARRAY_DESCRIPTOR line{bytes, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    CHECK(cuArrayCreate(&array, &line));
    CHECK(cuArrayCreate(&array_b, &line));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }
  ~Memory() {
    CHECK(cuStreamDestroy(stream));
    CHECK(cuArrayDestroy(array_b));
    CHECK(cuArrayDestroy(array));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree(b));
    CHECK(cuMemFree(a));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

void lines(Memory& m) {
  std::size_t n = m.bytes;
  CUdeviceptr host = reinterpret_cast<CUdeviceptr>(m.pinned);
  CHECK(cuMemcpyHtoD(m.a, m.pageable.data(), n));
  CHECK(cuMemcpyDtoD(m.b, m.a, n));
  CHECK(cuMemcpyDtoH(m.pageable.data(), m.b, n));
  CHECK(cuMemcpyHtoA(m.array, 0, m.pageable.data(), n));
  CHECK(cuMemcpyAtoA(m.array_b, 0, m.array, 0, n));
  CHECK(cuMemcpyAtoD(m.a, m.array_b, 0, n));
  CHECK(cuMemcpyDtoA(m.array, 0, m.a, n));
  CHECK(cuMemcpyAtoH(m.pageable.data(), m.array, 0, n));
  CHECK(cuMemcpy(m.a, host, n));  // only the addresses determine its direction
  CHECK(cuMemcpy(host, m.a, n));
  CHECK(cuMemcpy(m.b, m.a, n));
}

void queued(Memory& m, const Device& device) {
  std::size_t n = m.bytes;
  CUdeviceptr host = reinterpret_cast<CUdeviceptr>(m.pinned);
  CHECK(cuMemcpyHtoDAsync(m.a, m.pinned, n, m.stream));
  CHECK(cuMemcpyDtoDAsync(m.b, m.a, n, m.stream));
  CHECK(cuMemcpyDtoHAsync(m.pinned, m.b, n, m.stream));
  CHECK(cuMemcpyHtoAAsync(m.array, 0, m.pinned, n, m.stream));
  CHECK(cuMemcpyAtoHAsync(m.pinned, m.array, 0, n, m.stream));
  CHECK(cuMemcpyAsync(m.a, host, n, m.stream));
  CHECK(cuMemcpyAsync(host, m.b, n, m.stream));
  CHECK(cuMemcpyPeerAsync(m.b, device.context(), m.a, device.context(), n, m.stream));
  CHECK(cuStreamSynchronize(m.stream));
  CHECK(cuMemcpyPeer(m.b, device.context(), m.a, device.context(), n));
}

// Copies half of the bytes, as rows of 64 with gaps of 64, and as slices of eight such rows.
void blocks(Memory& m) {
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = CU_MEMORYTYPE_HOST;
  flat.srcHost = m.pinned;
  flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  flat.dstDevice = m.a;
  flat.srcPitch = flat.dstPitch = 128;
  flat.WidthInBytes = 64;
  flat.Height = m.bytes / 128;
  CHECK(cuMemcpy2D(&flat));
  CHECK(cuMemcpy2DUnaligned(&flat));
  CHECK(cuMemcpy2DAsync(&flat, m.stream));
  CUDA_MEMCPY3D deep{};
  deep.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  deep.srcDevice = m.a;
  deep.dstMemoryType = CU_MEMORYTYPE_HOST;
  deep.dstHost = m.pinned;
  deep.srcPitch = deep.dstPitch = 128;
  deep.srcHeight = deep.dstHeight = 8;
  deep.WidthInBytes = 64;
  deep.Height = 8;
  deep.Depth = m.bytes / 1024;
  CHECK(cuMemcpy3D(&deep));
  CHECK(cuMemcpy3DAsync(&deep, m.stream));
  CHECK(cuStreamSynchronize(m.stream));
}

void fill(Memory& m) {
  std::size_t n = m.bytes;
  CHECK(cuMemsetD8(m.a, 1, n));
  CHECK(cuMemsetD16(m.a, 1, n / 2));
  CHECK(cuMemsetD32(m.a, 1, n / 4));
  CHECK(cuMemsetD8Async(m.b, 1, n, m.stream));
  CHECK(cuMemsetD16Async(m.b, 1, n / 2, m.stream));
  CHECK(cuMemsetD32Async(m.b, 1, n / 4, m.stream));
  CHECK(cuMemsetD2D8(m.a, 128, 1, 64, n / 128));
  CHECK(cuMemsetD2D32(m.a, 128, 1, 16, n / 128));
  CHECK(cuStreamSynchronize(m.stream));
}

// Copies that name both GPUs, and copies that only have addresses on both.
void to_another_gpu(Memory& m, const Device& device) {
  int gpus = 0, reachable = 0;
  CHECK(cuDeviceGetCount(&gpus));
  if (gpus < 2) return;
  std::size_t n = m.bytes;
  CUdevice other;
  CUcontext context;
  CUdeviceptr there;
  CHECK(cuDeviceGet(&other, device.number() == 0 ? 1 : 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, other));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemAlloc(&there, n));
  device.use();
  CHECK(cuMemcpyPeer(there, context, m.a, device.context(), n));
  CHECK(cuMemcpyPeerAsync(m.a, device.context(), there, context, n, m.stream));
  CHECK(cuDeviceCanAccessPeer(&reachable, device.number(), other));
  if (reachable) CHECK(cuCtxEnablePeerAccess(context, 0));
  CHECK(cuMemcpyDtoDAsync(there, m.a, n, m.stream));
  CHECK(cuMemcpy(m.a, there, n));
  CHECK(cuStreamSynchronize(m.stream));
  if (reachable) CHECK(cuCtxDisablePeerAccess(context));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuMemFree(there));
  device.use();
  CHECK(cuDevicePrimaryCtxRelease(other));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = option(argc, argv, "--rounds", 4), bytes = option(argc, argv, "--bytes", 65536);
  if (rounds < 1 || bytes < 1024 || bytes > 65536 || bytes % 1024) {
    std::fprintf(stderr,
                 "usage: copies [--rounds N] [--bytes N: of 1024 to 65536, in steps of 1024]\n");
    return 2;
  }
  Device device;
  Memory memory(static_cast<std::size_t>(bytes));
  for (long i = 0; i < rounds; i++) {
    lines(memory);
    queued(memory, device);
    blocks(memory);
    fill(memory);
  }
  to_another_gpu(memory, device);
}
