// allocations [--rounds N]: allocates and frees memory of every kind, in storms: device, pitched,
// pinned, managed, stream-ordered, from a pool of its own, registered, and physical memory mapped
// at addresses reserved before.
#include <vector>

#include "driver.hpp"

namespace {

constexpr std::size_t MANY = 32, STEP = 4096;

void plain() {
  std::vector<CUdeviceptr> all(MANY);
  for (std::size_t i = 0; i < MANY; i++) CHECK(cuMemAlloc(&all[i], STEP * (i + 1)));
  for (auto address : all) CHECK(cuMemFree(address));
  CUdeviceptr pitched = 0, managed = 0;
  std::size_t pitch = 0;
  CHECK(cuMemAllocPitch(&pitched, &pitch, 100, 30, 4));
  CHECK(cuMemFree(pitched));
  CHECK(cuMemAllocManaged(&managed, STEP, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemFree(managed));
}

void of_the_host() {
  void* memory = nullptr;
  CHECK(cuMemAllocHost(&memory, STEP));
  CHECK(cuMemFreeHost(memory));
  CHECK(cuMemHostAlloc(&memory, 2 * STEP, CU_MEMHOSTALLOC_DEVICEMAP));
  CHECK(cuMemFreeHost(memory));
  void* own = std::aligned_alloc(STEP, 3 * STEP);
  CHECK(cuMemHostRegister(own, 3 * STEP, 0));
  CHECK(cuMemHostUnregister(own));
  std::free(own);
}

void in_order_of_a_stream(CUdevice device) {
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  CUmemoryPool pool = nullptr;
  CHECK(cuMemPoolCreate(&pool, &properties));
  std::vector<CUdeviceptr> all(MANY);
  for (std::size_t i = 0; i < MANY; i++) {
    if (i % 2)
      CHECK(cuMemAllocFromPoolAsync(&all[i], STEP * (i + 1), pool, stream));
    else
      CHECK(cuMemAllocAsync(&all[i], STEP * (i + 1), stream));
  }
  for (auto address : all) CHECK(cuMemFreeAsync(address, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemPoolDestroy(pool));
  CHECK(cuStreamDestroy(stream));
}

// Like caching allocators: reserves one long address range and maps physical memory piece by piece.
void mapped(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  std::size_t step = 0;
  CHECK(cuMemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  constexpr std::size_t PIECES = 4;
  CUdeviceptr range = 0;
  CHECK(cuMemAddressReserve(&range, step * PIECES, 0, 0, 0));
  std::vector<CUmemGenericAllocationHandle> pieces(PIECES);
  for (std::size_t i = 0; i < PIECES; i++) {
    CHECK(cuMemCreate(&pieces[i], step, &properties, 0));
    CHECK(cuMemMap(range + i * step, step, 0, pieces[i], 0));
  }
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemSetAccess(range, step * PIECES, &access, 1));
  CHECK(cuMemsetD8(range, 1, step * PIECES));
  CHECK(cuCtxSynchronize());  // the host does not wait for a fill, and others may have the GPU
  CHECK(cuMemUnmap(range, step * PIECES));
  for (auto piece : pieces) CHECK(cuMemRelease(piece));
  CHECK(cuMemAddressFree(range, step * PIECES));
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = option(argc, argv, "--rounds", 4);
  if (rounds < 1) {
    std::fprintf(stderr, "usage: allocations [--rounds N]\n");
    return 2;
  }
  Device device;
  for (long i = 0; i < rounds; i++) {
    plain();
    of_the_host();
    in_order_of_a_stream(device.number());
    mapped(device.number());
  }
}
