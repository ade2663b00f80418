// Device and host memory. A device address is only a number, unless the GPU computes; freed
// addresses are reused for a request of the same size, as a tracer must expect.
#include <cstdlib>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "behaviour.hpp"
#include "capture.hpp"
#include "compute/compute.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace fake {
namespace {

constexpr uint64_t kPitch = 512;

struct Block {
  uint64_t size;
  Handle context;
};

struct Memory {
  std::map<DevicePtr, Block> blocks;
  std::unordered_map<uint64_t, std::vector<DevicePtr>> freed;  // by size
  uint64_t used = 0;
  std::map<void*, uint64_t> host;  // allocated
  std::map<void*, uint64_t> registered;
};

Memory& memory() {
  static Memory* all = new Memory;
  return *all;
}

Status allocate(DevicePtr* pointer, uint64_t size) {
  if (!pointer || size == 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!take_memory(size)) return kOutOfMemory;
  std::vector<DevicePtr>& freed = memory().freed[size];
  if (freed.empty()) {
    const std::optional<DevicePtr> range = computes() ? backed_range(size) : new_device_range(size);
    if (!range) {
      give_memory(size);
      return kOutOfMemory;
    }
    *pointer = *range;
  } else {
    *pointer = freed.back();
    freed.pop_back();
  }
  if (computes()) memory_begins(*pointer, size);
  memory().blocks[*pointer] = {size, current_context()};
  return kSuccess;
}

void release(std::map<DevicePtr, Block>::iterator block) {
  if (computes()) memory_ends(block->first);
  give_memory(block->second.size);
  memory().freed[block->second.size].push_back(block->first);
}

Status forget_device(DevicePtr pointer) {
  const std::lock_guard lock(state_mutex());
  const auto block = memory().blocks.find(pointer);
  if (block == memory().blocks.end()) return kInvalidValue;
  release(block);
  memory().blocks.erase(block);
  return kSuccess;
}

// The driver releases it first: once it is forgotten, another thread may get its address.
Status free_device(DevicePtr pointer) {
  if (pointer == 0) return kSuccess;
  driver_free(pointer);
  return forget_device(pointer);
}

// A separate block, not one from a pool.
Status allocate_own(DevicePtr* pointer, uint64_t size) {
  if (const Status bad = allocate(pointer, size)) return bad;
  const Status status = driver_allocate(*pointer, size);
  if (status != kSuccess) forget_device(*pointer);
  return status;
}

// Memory of a node is only an address: launches take none for it.
Status allocate_on(Handle stream, DevicePtr* pointer, uint64_t size) {
  const Status checked = pointer && size ? kSuccess : kInvalidValue;
  const auto work = [&] { return sized_work(Does::alloc, size); };
  const auto status = captured(stream, checked, work);
  if (!status) return allocate(pointer, size);
  if (*status == kSuccess) *pointer = new_device_range(size);
  return *status;
}

}  // namespace

bool take_memory(uint64_t size) {
  if (size > settings().memory - memory().used) return false;
  memory().used += size;
  return true;
}

void give_memory(uint64_t size) { memory().used -= size; }

uint64_t memory_in_use() { return memory().used; }

void free_memory_of(Handle context) {
  auto& blocks = memory().blocks;
  for (auto block = blocks.begin(); block != blocks.end();) {
    if (block->second.context != context) {
      ++block;
      continue;
    }
    release(block);
    block = blocks.erase(block);
  }
}

Status cuMemAlloc(DevicePtr* pointer, uint64_t size) { return allocate_own(pointer, size); }

Status cuMemAllocManaged(DevicePtr* pointer, uint64_t size, uint32_t) {
  return allocate(pointer, size);
}

Status cuMemAllocPitch(DevicePtr* pointer, uint64_t* pitch, uint64_t width, uint64_t height,
                       uint32_t element_size) {
  if (!pitch || (element_size != 4 && element_size != 8 && element_size != 16))
    return kInvalidValue;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  return allocate_own(pointer, *pitch * height);
}

Status cuMemAllocAsync(DevicePtr* pointer, uint64_t size, Handle stream) {
  return allocate_on(stream, pointer, size);
}

Status cuMemAllocFromPoolAsync(DevicePtr* pointer, uint64_t size, Handle pool, Handle stream) {
  if (!pool) return kInvalidValue;
  return allocate_on(stream, pointer, size);
}

Status cuMemFree(DevicePtr pointer) { return free_device(pointer); }

Status cuMemFreeAsync(DevicePtr pointer, Handle stream) {
  const Status checked = pointer ? kSuccess : kInvalidValue;
  if (const auto status = captured(stream, checked, [] { return Work{.does = Does::free}; }))
    return *status;
  if (checked != kSuccess) return checked;
  return free_device(pointer);
}

Status cuMemGetInfo(uint64_t* free, uint64_t* total) {
  const std::lock_guard lock(state_mutex());
  if (free) *free = settings().memory - memory().used;
  if (total) *total = settings().memory;
  return kSuccess;
}

Status cuMemGetAddressRange(DevicePtr* base, uint64_t* size, DevicePtr pointer) {
  const std::lock_guard lock(state_mutex());
  auto block = memory().blocks.upper_bound(pointer);
  if (block == memory().blocks.begin()) return kNotFound;
  --block;
  if (pointer - block->first >= block->second.size) return kNotFound;
  if (base) *base = block->first;
  if (size) *size = block->second.size;
  return kSuccess;
}

Status cuMemHostAlloc(void** pointer, uint64_t size, uint32_t) {
  if (!pointer || size == 0) return kInvalidValue;
  void* address = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  if (!address) return kOutOfMemory;
  if (const Status bad = driver_pin(address, size)) {
    free(address);
    return bad;
  }
  const std::lock_guard lock(state_mutex());
  memory().host[address] = size;
  *pointer = address;
  return kSuccess;
}

Status cuMemAllocHost(void** pointer, uint64_t size) { return cuMemHostAlloc(pointer, size, 0); }

Status cuMemFreeHost(void* pointer) {
  {
    const std::lock_guard lock(state_mutex());
    if (memory().host.erase(pointer) == 0) return kInvalidValue;
  }
  driver_unpin(pointer);
  free(pointer);
  return kSuccess;
}

Status cuMemHostRegister(void* pointer, uint64_t size, uint32_t) {
  if (!pointer || size == 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  return memory().registered.emplace(pointer, size).second ? kSuccess
                                                           : kHostMemoryAlreadyRegistered;
}

Status cuMemHostUnregister(void* pointer) {
  const std::lock_guard lock(state_mutex());
  return memory().registered.erase(pointer) ? kSuccess : kHostMemoryNotRegistered;
}

bool is_pinned(uint64_t at, uint64_t size) {
  for (const auto* in : {&memory().host, &memory().registered})
    for (const auto& [pointer, length] : *in) {
      const auto from = reinterpret_cast<uint64_t>(pointer);
      if (at >= from && at - from <= length && size <= length - (at - from)) return true;
    }
  return false;
}

Status cuMemHostGetDevicePointer(DevicePtr* device_pointer, void* pointer, uint32_t) {
  if (!device_pointer || !pointer) return kInvalidValue;
  *device_pointer = reinterpret_cast<DevicePtr>(pointer);  // one address space, as on 64-bit Linux
  return kSuccess;
}

// Only a GPU that computes has memory at its addresses. What else can be asked is not simulated.
Status cuPointerGetAttribute(void* data, uint32_t attribute, DevicePtr pointer) {
  constexpr uint32_t kMemoryType = 2;
  if (!data) return kInvalidValue;
  if (attribute != kMemoryType || !computes()) return kSuccess;
  const std::lock_guard lock(state_mutex());
  if (!is_memory(pointer, 1)) return kInvalidValue;  // the driver does not know the host's
  *static_cast<uint32_t*>(data) = kOnDevice;
  return kSuccess;
}

}  // namespace fake
