#include <map>
#include <optional>
#include <vector>

#include "behaviour.hpp"
#include "compute/compute.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

// The exported entries, called as a program would, so that a probe on them sees the nested calls.
extern "C" fake::Status cuMemAlloc_v2(fake::DevicePtr* pointer, uint64_t size);
extern "C" fake::Status cuMemFree_v2(fake::DevicePtr pointer);

namespace fake {
namespace {

struct Contexts {
  std::map<Handle, int32_t> live;  // with the device of each
  std::map<Handle, int32_t>
      known;  // likewise, including primary ones that are not retained any more
  std::map<int32_t, Handle> primary;
  std::map<int32_t, int> retained;
};

Contexts& contexts() {
  static Contexts* all = new Contexts;
  return *all;
}

thread_local std::vector<Handle> stack;  // of this thread; the last is current

bool is_device(int32_t device) { return device >= 0 && device < settings().devices; }

void nest() {
  if (!settings().nest) return;
  DevicePtr pointer = 0;
  if (::cuMemAlloc_v2(&pointer, 4096) == kSuccess) ::cuMemFree_v2(pointer);
}

void destroy(Handle context) {
  free_memory_of(context);
  unload_modules_of(context);
  contexts().live.erase(context);
}

bool is_live(Handle context) {
  const std::lock_guard lock(state_mutex());
  return contexts().live.contains(context);
}

Status create(Handle* context, int32_t device) {
  if (!context) return kInvalidValue;
  int32_t count = 0;
  if (const Status bad = cuDeviceGetCount(&count)) return bad;
  if (!is_device(device)) return kInvalidDevice;
  nest();
  const Handle made = new_handle();
  if (const Status bad = driver_create_context(made, device)) return bad;
  const std::lock_guard lock(state_mutex());
  *context = made;
  contexts().live[made] = contexts().known[made] = device;
  stack.push_back(made);
  return kSuccess;
}

}  // namespace

Handle current_context() { return stack.empty() ? nullptr : stack.back(); }

std::optional<int32_t> current_device() {
  const std::lock_guard lock(state_mutex());
  const auto found = contexts().known.find(current_context());
  return found == contexts().known.end() ? std::nullopt : std::optional(found->second);
}

Status cuDevicePrimaryCtxRetain(Handle* context, int32_t device) {
  if (!context) return kInvalidValue;
  int32_t count = 0;
  if (const Status bad = cuDeviceGetCount(&count)) return bad;
  if (!is_device(device)) return kInvalidDevice;
  nest();
  Handle primary = nullptr;
  bool first = false;
  {
    const std::lock_guard lock(state_mutex());
    Handle& known = contexts().primary[device];
    if (!known) known = new_handle();
    primary = known;
    contexts().live[primary] = contexts().known[primary] = device;
    first = contexts().retained[device]++ == 0;
  }
  if (first) {
    if (const Status bad = driver_create_context(primary, device)) {
      const std::lock_guard lock(state_mutex());
      if (--contexts().retained[device] == 0) destroy(primary);
      return bad;
    }
  }
  *context = primary;
  return kSuccess;
}

Status cuDevicePrimaryCtxRelease(int32_t device) {
  if (!is_device(device)) return kInvalidDevice;
  Handle primary = nullptr;
  {
    const std::lock_guard lock(state_mutex());
    int& retained = contexts().retained[device];
    if (retained == 0) return kInvalidContext;
    if (--retained > 0) return kSuccess;
    primary = contexts().primary[device];
    destroy(primary);
  }
  driver_destroy_context(primary);
  return kSuccess;
}

Status cuDevicePrimaryCtxReset(int32_t device) {
  if (!is_device(device)) return kInvalidDevice;
  Handle primary = nullptr;
  {
    const std::lock_guard lock(state_mutex());
    if (contexts().retained[device] == 0) return kSuccess;
    contexts().retained[device] = 0;
    primary = contexts().primary[device];
    destroy(primary);
  }
  driver_destroy_context(primary);
  return kSuccess;
}

Status cuDevicePrimaryCtxGetState(int32_t device, uint32_t* flags, int32_t* active) {
  if (!is_device(device)) return kInvalidDevice;
  if (!flags || !active) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  *flags = 0;
  *active = contexts().retained[device] > 0;
  return kSuccess;
}

Status cuCtxCreate(Handle* context, uint32_t, int32_t device) { return create(context, device); }

Status cuCtxCreate(Handle* context, void*, uint32_t, int32_t device) {
  return create(context, device);
}

Status cuCtxDestroy(Handle context) {
  {
    const std::lock_guard lock(state_mutex());
    if (!contexts().live.contains(context)) return kInvalidContext;
    destroy(context);
    contexts().known.erase(context);
  }
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  driver_destroy_context(context);
  return kSuccess;
}

Status cuCtxSetCurrent(Handle context) {
  if (context && !is_live(context)) return kInvalidContext;
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return kSuccess;
}

Status cuCtxGetCurrent(Handle* context) {
  if (!context) return kInvalidValue;
  *context = current_context();
  return kSuccess;
}

Status cuCtxPushCurrent(Handle context) {
  if (!is_live(context)) return kInvalidContext;
  stack.push_back(context);
  return kSuccess;
}

Status cuCtxPopCurrent(Handle* context) {
  if (stack.empty()) return kInvalidContext;
  if (context) *context = stack.back();
  stack.pop_back();
  return kSuccess;
}

Status cuCtxGetDevice(int32_t* device) {
  if (!device) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto found = contexts().live.find(current_context());
  if (found == contexts().live.end()) return kInvalidContext;
  *device = found->second;
  return kSuccess;
}

Status cuCtxSynchronize() {
  wait_for_gpu();
  return kSuccess;
}

Status cuCtxSynchronize(Handle) { return cuCtxSynchronize(); }

}  // namespace fake
