// Virtual memory management: a program reserves addresses, creates memory, and maps one into the
// other.
#include <map>

#include "behaviour.hpp"
#include "compute/compute.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

constexpr uint64_t kGranularity = 2 << 20;

struct Physical {
  uint64_t size;
  bool released;  // by the program; it lives on while it is mapped
  int mappings;
  int memory;  // if the GPU computes
};

struct Mapping {
  uint64_t size;
  Handle handle;
};

struct Vmm {
  std::map<DevicePtr, uint64_t> reserved;
  std::map<Handle, Physical> physical;
  std::map<DevicePtr, Mapping> mapped;
};

Vmm& vmm() {
  static Vmm* all = new Vmm;
  return *all;
}

bool aligned(uint64_t size) { return size != 0 && size % kGranularity == 0; }

void free_if_unused(std::map<Handle, Physical>::iterator memory) {
  if (!memory->second.released || memory->second.mappings > 0) return;
  give_memory(memory->second.size);
  if (computes()) destroy_physical(memory->second.memory);
  vmm().physical.erase(memory);
}

bool is_reserved(DevicePtr pointer, uint64_t size) {
  auto range = vmm().reserved.upper_bound(pointer);
  if (range == vmm().reserved.begin()) return false;
  --range;
  return pointer + size <= range->first + range->second;
}

bool is_free(DevicePtr pointer, uint64_t size) {
  const auto next = vmm().mapped.lower_bound(pointer);
  if (next != vmm().mapped.end() && next->first < pointer + size) return false;
  return next == vmm().mapped.begin() ||
         std::prev(next)->first + std::prev(next)->second.size <= pointer;
}

}  // namespace

Status cuMemGetAllocationGranularity(uint64_t* granularity, void* properties, uint32_t) {
  if (!granularity || !properties) return kInvalidValue;
  *granularity = kGranularity;
  return kSuccess;
}

Status cuMemAddressReserve(DevicePtr* pointer, uint64_t size, uint64_t, DevicePtr wanted,
                           uint64_t flags) {
  if (!pointer || !aligned(size) || flags != 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (computes()) {
    const auto range = wanted ? hold_wanted(wanted, size) : hold_range(size);
    if (!range) return kOutOfMemory;
    *pointer = *range;
  } else {
    const DevicePtr start = new_device_range(size + kGranularity);
    *pointer = (start + kGranularity - 1) / kGranularity * kGranularity;
  }
  vmm().reserved[*pointer] = size;
  return kSuccess;
}

Status cuMemAddressFree(DevicePtr pointer, uint64_t size) {
  const std::lock_guard lock(state_mutex());
  const auto range = vmm().reserved.find(pointer);
  if (range == vmm().reserved.end() || range->second != size || !is_free(pointer, size)) {
    return kInvalidValue;
  }
  vmm().reserved.erase(range);
  if (computes()) let_go(pointer, size);
  return kSuccess;
}

Status cuMemCreate(Handle* handle, uint64_t size, void* properties, uint64_t flags) {
  if (!handle || !properties || !aligned(size) || flags != 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!take_memory(size)) return kOutOfMemory;
  const int memory = computes() ? create_physical(size) : -1;
  if (computes() && memory < 0) {
    give_memory(size);
    return kOutOfMemory;
  }
  *handle = new_handle();
  vmm().physical[*handle] = {size, false, 0, memory};
  return kSuccess;
}

Status cuMemRelease(Handle handle) {
  const std::lock_guard lock(state_mutex());
  const auto memory = vmm().physical.find(handle);
  if (memory == vmm().physical.end() || memory->second.released) return kInvalidValue;
  memory->second.released = true;
  free_if_unused(memory);
  return kSuccess;
}

Status cuMemMap(DevicePtr pointer, uint64_t size, uint64_t offset, Handle handle, uint64_t flags) {
  const std::lock_guard lock(state_mutex());
  const auto memory = vmm().physical.find(handle);
  if (memory == vmm().physical.end() || memory->second.released || offset != 0 || flags != 0 ||
      size != memory->second.size || !is_reserved(pointer, size) || !is_free(pointer, size)) {
    return kInvalidValue;
  }
  if (computes()) {
    if (!map_physical(pointer, size, memory->second.memory)) return kOutOfMemory;
    memory_begins(pointer, size);
  }
  ++memory->second.mappings;
  vmm().mapped[pointer] = {size, handle};
  return kSuccess;
}

Status cuMemUnmap(DevicePtr pointer, uint64_t size) {
  const std::lock_guard lock(state_mutex());
  const auto mapping = vmm().mapped.find(pointer);
  if (mapping == vmm().mapped.end() || mapping->second.size != size) return kInvalidValue;
  const auto memory = vmm().physical.find(mapping->second.handle);
  if (computes()) {
    unmap_physical(pointer, size);
    memory_ends(pointer);
  }
  --memory->second.mappings;
  free_if_unused(memory);
  vmm().mapped.erase(mapping);
  return kSuccess;
}

Status cuMemSetAccess(DevicePtr pointer, uint64_t size, void* description, uint64_t count) {
  if (!description || count == 0) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto mapping = vmm().mapped.find(pointer);
  if (mapping == vmm().mapped.end() || mapping->second.size != size) return kInvalidValue;
  return kSuccess;
}

}  // namespace fake
