#include "driver.hpp"

#include <cstring>

#include "driver_state.hpp"
#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace fake {

Driver* driver = new Driver;  // leaked, so that it outlives every thread

namespace {

constexpr uint64_t kOwnMemory = 1 << 20;  // a smaller size is part of an existing block
constexpr uint64_t kCodeBytes = 2 << 20;
constexpr uint32_t kNoMemory = 0x51;  // NV_ERR_NO_MEMORY

// --- cuInit

void ask_for_version() {
  nvos::Version version = {};
  version.reply = nodes_pretend();
  strcpy(version.text, "580.159.04");
  escape(driver->ctl, nvos::kCheckVersion, version);
  nvos::SysParams parameters = {};
  escape(driver->ctl, nvos::kSysParams, parameters);
  nvos::CardInfo cards = {};
  escape(driver->ctl, nvos::kCardInfo, cards);
}

Status start_gpu(int index) {
  Gpu gpu;
  gpu.node = open_node("nvidia" + std::to_string(index));
  if (!gpu.node.is_open()) return kNoDevice;
  memset(gpu.uuid.bytes, 0xA0 + index, sizeof gpu.uuid.bytes);  // what cuDeviceGetUuid says
  register_fd(gpu.node);
  nvos::WaitOpen opened = {};
  escape(gpu.node, nvos::kWaitOpen, opened);
  nvos::NumaInfo numa = {};
  escape(gpu.node, nvos::kNumaInfo, numa);

  nvos::DeviceParams parameters = {};
  parameters.device = static_cast<uint32_t>(index);
  uint32_t bad = allocate_object<nvos::Alloc21>(driver->under(driver->client), nvos::kDevice,
                                                gpu.device, &parameters, sizeof parameters);
  if (bad) return failure(bad);
  uint32_t subdevice = 0;
  bad = allocate_object<nvos::Alloc21>(driver->under(gpu.device), nvos::kSubdevice, gpu.subdevice,
                                       &subdevice, sizeof subdevice);
  if (bad) return failure(bad);
  unsigned char answer[64] = {};
  for (const uint32_t command :
       {nvos::kGetInfo, nvos::kGetBarInfo, nvos::kGrGetInfo, nvos::kGetAllCaps}) {
    control(driver->under(gpu.subdevice), command, answer);
  }
  nvos::UvmRegisterGpu request = {};
  request.gpu = gpu.uuid;
  request.fd = driver->ctl.fd;
  request.client = driver->client;
  uvm_ioctl(driver->uvm, nvos::kUvmRegisterGpu, request);
  driver->gpus.push_back(gpu);
  return kSuccess;
}

Status start() {
  driver->ctl = open_node("nvidiactl");
  if (!driver->ctl.is_open()) return kNoDevice;
  ask_for_version();
  if (const uint32_t bad =
          allocate_object<nvos::Alloc21>({driver->ctl, 0, 0}, nvos::kClient, driver->client)) {
    return failure(bad);
  }
  unsigned char ids[128] = {};
  control(driver->under(driver->client), nvos::kGetAttachedIds, ids);
  control(driver->under(driver->client), nvos::kGetIdInfo, ids);
  driver->uvm = open_node("nvidia-uvm");
  if (!driver->uvm.is_open()) return kNoDevice;
  nvos::UvmInitialize initialize = {};
  uvm_ioctl(driver->uvm, nvos::kUvmInitialize, initialize);
  driver->uvm_memory = open_node("nvidia-uvm");
  nvos::UvmMmInitialize memory = {driver->uvm.fd, 0};
  uvm_ioctl(driver->uvm_memory, nvos::kUvmMmInitialize, memory);
  for (int i = 0; i < settings().devices; ++i) {
    if (const Status bad = start_gpu(i)) return bad;
  }
  return kSuccess;
}

// --- memory

Status keep_memory(Kind kind, uint64_t key, void* host, uint64_t base, uint64_t size) {
  const Handle handle = current_context();
  const auto context = context_of(handle);
  if (!context) return kSuccess;
  GpuMemory memory;
  const uint32_t bad = make_memory(handle, *context, nvos::kVideoMemory, host, base, size, memory);
  if (bad) return failure(bad);
  const std::lock_guard lock(driver->mutex);
  driver->memory[{kind, key}] = memory;
  return kSuccess;
}

void release_memory(Kind kind, uint64_t key) {
  GpuMemory memory;
  {
    const std::lock_guard lock(driver->mutex);
    const auto found = driver->memory.find({kind, key});
    if (found == driver->memory.end()) return;
    memory = found->second;
    driver->memory.erase(found);
  }
  drop_memory(memory);
}

}  // namespace

void register_fd(const Node& node) {
  nvos::RegisterFd request = {driver->ctl.fd};
  escape(node, nvos::kRegisterFd, request);
}

Status failure(uint32_t status) {
  if (status == 0) return kSuccess;
  return status == kNoMemory ? kOutOfMemory : kUnknown;
}

std::shared_ptr<Context> context_of(Handle handle) {
  const std::lock_guard lock(driver->mutex);
  const auto found = driver->contexts.find(handle);
  return found == driver->contexts.end() ? nullptr : found->second;
}

uint32_t make_memory(Handle handle, const Context& context, uint32_t klass, void* host,
                     uint64_t base, uint64_t size, GpuMemory& memory) {
  const Gpu& gpu = driver->gpus[context.gpu];
  size = (size + 4095) / 4096 * 4096;
  memory = {handle, 0, gpu.device, base, size};
  const uint32_t bad =
      host ? describe_memory({gpu.node, driver->client, gpu.device}, memory.object, host, size)
           : allocate_memory(driver->under(gpu.device), klass, memory.object, size,
                             context.va_space);
  if (bad) return bad;
  return map_for_gpu(driver->uvm, driver->under(memory.object), gpu.uuid, base, size);
}

void drop_memory(const GpuMemory& memory) {
  unmap_for_gpu(driver->uvm, memory.base, memory.size);
  free_object(driver->under(memory.parent), memory.object);
}

Status driver_init() {
  if (!settings().driver) return kSuccess;
  const std::lock_guard lock(driver->starting);
  if (driver->started) return kSuccess;
  const Status status = start();
  driver->started = status == kSuccess;
  if (status != kSuccess) {
    for (Gpu& gpu : driver->gpus) close_node(gpu.node);
    driver->gpus.clear();
    for (Node* node : {&driver->ctl, &driver->uvm, &driver->uvm_memory}) close_node(*node);
  }
  return status;
}

Status driver_allocate(DevicePtr pointer, uint64_t size) {
  if (!settings().driver || size < kOwnMemory) return kSuccess;
  return keep_memory(Kind::device, pointer, nullptr, pointer, size);
}

void driver_free(DevicePtr pointer) {
  if (settings().driver) release_memory(Kind::device, pointer);
}

Status driver_pin(void* pointer, uint64_t size) {
  if (!settings().driver) return kSuccess;
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return keep_memory(Kind::host, address, pointer, address, size);
}

void driver_unpin(void* pointer) {
  if (settings().driver) release_memory(Kind::host, reinterpret_cast<uint64_t>(pointer));
}

Status driver_load(Handle module) {
  if (!settings().driver) return kSuccess;
  return keep_memory(Kind::code, reinterpret_cast<uint64_t>(module), nullptr,
                     new_device_range(kCodeBytes), kCodeBytes);
}

void driver_unload(Handle module) {
  if (settings().driver) release_memory(Kind::code, reinterpret_cast<uint64_t>(module));
}

void driver_forget() { driver = new Driver; }

}  // namespace fake
