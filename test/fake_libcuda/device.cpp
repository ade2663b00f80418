// Devices, versions and errors.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "behaviour.hpp"
#include "compute/compute.hpp"
#include "driver.hpp"
#include "injection.hpp"
#include "objects.hpp"
#include "settings.hpp"

namespace fake {
namespace {

std::atomic<bool> initialized;

struct ErrorText {
  Status status;
  const char* name;
  const char* text;
};

const ErrorText kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the memory is registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the memory is not registered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

Status check(int32_t device) {
  if (!initialized) return kNotInitialized;
  return device >= 0 && device < settings().devices ? kSuccess : kInvalidDevice;
}

Status copy_text(void* to, int32_t length, const char* text) {
  if (!to || length <= 0) return kInvalidValue;
  snprintf(static_cast<char*>(to), static_cast<size_t>(length), "%s", text);
  return kSuccess;
}

template <typename T>
Status give(T* out, T value) {
  if (!out) return kInvalidValue;
  *out = value;
  return kSuccess;
}

Status find_error(uint32_t error, void* out, const char* ErrorText::*field) {
  if (!out) return kInvalidValue;
  for (const ErrorText& known : kErrors) {
    if (known.status == error) return give(static_cast<const char**>(out), known.*field);
  }
  *static_cast<const char**>(out) = nullptr;
  return kInvalidValue;
}

}  // namespace

Status cuInit(uint32_t flags) {
  if (flags != 0) return kInvalidValue;
  if (const Status bad = driver_init()) return bad;
  if (computes()) {
    const std::lock_guard lock(state_mutex());
    note_what_is_mapped();
  }
  initialized = true;
  load_injection();
  return kSuccess;
}

Status cuDriverGetVersion(int32_t* version) { return give(version, 13000); }

Status cuDeviceGetCount(int32_t* count) {
  if (!initialized) return kNotInitialized;
  return give(count, settings().devices);
}

Status cuDeviceGet(int32_t* device, int32_t ordinal) {
  if (const Status bad = check(ordinal)) return bad;
  return give(device, ordinal);
}

Status cuDeviceGetName(void* name, int32_t length, int32_t device) {
  if (const Status bad = check(device)) return bad;
  return copy_text(name, length, "Simulated H200");
}

Status cuDeviceGetPCIBusId(void* id, int32_t length, int32_t device) {
  if (const Status bad = check(device)) return bad;
  char text[32];
  snprintf(text, sizeof text, "0000:%02X:00.0", 1 + device);
  return copy_text(id, length, text);
}

Status cuDeviceGetUuid(void* uuid, int32_t device) {
  if (const Status bad = check(device)) return bad;
  if (!uuid) return kInvalidValue;
  memset(uuid, 0xA0 + device, 16);
  return kSuccess;
}

Status cuDeviceGetAttribute(int32_t* value, uint32_t attribute, int32_t device) {
  if (const Status bad = check(device)) return bad;
  switch (attribute) {
    case 1:  // max threads per block
      return give(value, 1024);
    case 10:  // warp size
      return give(value, 32);
    case 16:  // multiprocessors
      return give(value, 132);
    case 33:  // PCI: bus, device, domain; as in the simulated NVML
      return give(value, 0x3b + device);
    case 34:
    case 50:
      return give(value, 0);
    case 75:  // compute capability, major and minor
      return give(value, 9);
    case 76:
      return give(value, 0);
    default:
      return give(value, 1);
  }
}

Status cuDeviceComputeCapability(int32_t* major, int32_t* minor, int32_t device) {
  if (const Status bad = check(device)) return bad;
  if (const Status bad = give(major, 9)) return bad;
  return give(minor, 0);
}

Status cuDeviceTotalMem(uint64_t* bytes, int32_t device) {
  if (const Status bad = check(device)) return bad;
  return give(bytes, settings().memory);
}

Status cuDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
  if (const Status bad = check(device)) return bad;
  if (const Status bad = check(peer)) return bad;
  return give(can, static_cast<int32_t>(device != peer));
}

Status cuGetErrorName(uint32_t error, void* name) {
  return find_error(error, name, &ErrorText::name);
}

Status cuGetErrorString(uint32_t error, void* text) {
  return find_error(error, text, &ErrorText::text);
}

// The private tables through which cudart bypasses the exported functions: there are none here.
Status cuGetExportTable(void*, void*) { return kNotFound; }

}  // namespace fake
