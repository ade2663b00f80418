// Memory pools: handles with attributes; memory.cpp allocates from them.
#include <cstring>
#include <map>
#include <set>

#include "behaviour.hpp"
#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace fake {
namespace {

constexpr uint32_t kFirstWideAttribute = 4;  // attributes 1 to 3 are int, the others 64 bits
constexpr uint32_t kUsedMemory = 7;

struct Pools {
  std::set<Handle> live;
  std::map<int32_t, Handle> default_of, current_of;
  std::map<std::pair<Handle, uint32_t>, uint64_t> attributes;
};

Pools& pools() {
  static Pools* all = new Pools;
  return *all;
}

uint64_t width(uint32_t attribute) { return attribute < kFirstWideAttribute ? 4 : 8; }

Handle default_pool(int32_t device) {
  Handle& pool = pools().default_of[device];
  if (!pool) pools().live.insert(pool = new_handle());
  return pool;
}

Status check(Handle* pool, int32_t device) {
  if (!pool) return kInvalidValue;
  return device >= 0 && device < settings().devices ? kSuccess : kInvalidDevice;
}

}  // namespace

Status cuMemPoolCreate(Handle* pool, void* properties) {
  if (!pool || !properties) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  pools().live.insert(*pool = new_handle());
  return kSuccess;
}

Status cuMemPoolDestroy(Handle pool) {
  const std::lock_guard lock(state_mutex());
  return pools().live.erase(pool) ? kSuccess : kInvalidValue;
}

Status cuDeviceGetDefaultMemPool(Handle* pool, int32_t device) {
  if (const Status bad = check(pool, device)) return bad;
  const std::lock_guard lock(state_mutex());
  *pool = default_pool(device);
  return kSuccess;
}

Status cuDeviceGetMemPool(Handle* pool, int32_t device) {
  if (const Status bad = check(pool, device)) return bad;
  const std::lock_guard lock(state_mutex());
  const auto set = pools().current_of.find(device);
  *pool = set == pools().current_of.end() ? default_pool(device) : set->second;
  return kSuccess;
}

Status cuDeviceSetMemPool(int32_t device, Handle pool) {
  if (const Status bad = check(&pool, device)) return bad;
  const std::lock_guard lock(state_mutex());
  if (!pools().live.contains(pool)) return kInvalidValue;
  pools().current_of[device] = pool;
  return kSuccess;
}

Status cuMemPoolSetAttribute(Handle pool, uint32_t attribute, void* value) {
  if (!value) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!pools().live.contains(pool)) return kInvalidValue;
  uint64_t number = 0;
  memcpy(&number, value, width(attribute));
  pools().attributes[{pool, attribute}] = number;
  return kSuccess;
}

Status cuMemPoolGetAttribute(Handle pool, uint32_t attribute, void* value) {
  if (!value) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!pools().live.contains(pool)) return kInvalidValue;
  const uint64_t number =
      attribute == kUsedMemory ? memory_in_use() : pools().attributes[{pool, attribute}];
  memcpy(value, &number, width(attribute));
  return kSuccess;
}

}  // namespace fake
