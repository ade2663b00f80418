// The kernel driver's side of a context: its address space, its channels, and the page through
// which a launch notifies the GPU.
#include <pthread.h>
#include <sys/mman.h>

#include <memory>
#include <mutex>
#include <thread>

#include "driver.hpp"
#include "driver_state.hpp"
#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace fake {
namespace {

constexpr uint64_t kFifoBytes = 64 << 10, kDoorbellBytes = 64 << 10, kPoolBytes = 2 << 20;

// Adds a channel to a context's group, with the engine that it feeds.
uint32_t make_channel(Handle handle, const Context& context, uint32_t engine, Channel& channel) {
  const Gpu& gpu = driver->gpus[context.gpu];
  channel.context = handle;
  uint32_t bad = make_memory(handle, context, nvos::kSystemMemory, nullptr,
                             new_device_range(kFifoBytes), kFifoBytes, channel.fifo);
  if (bad) return bad;
  nvos::ChannelParams parameters = {};
  parameters.buffer = channel.fifo.object;
  parameters.fifo_offset = channel.fifo.base;
  parameters.fifo_entries = 1024;
  parameters.context_share = context.share;
  parameters.va_space = context.va_space;
  parameters.engine = engine == nvos::kCompute ? 1 : 9;
  bad = allocate_object(driver->under(context.group), nvos::kChannel, channel.object, &parameters,
                        sizeof parameters);
  if (bad) return bad;
  unsigned char engine_parameters[16] = {};
  uint32_t object = 0;
  allocate_object(driver->under(channel.object), engine, object, engine_parameters,
                  engine == nvos::kCompute ? 16 : 8);
  uint32_t token = nodes_pretend() ? 0x00010008 : 0;
  control(driver->under(channel.object), nvos::kGetToken, token);
  nvos::UvmRegisterChannel request = {};
  request.gpu = gpu.uuid;
  request.fd = driver->ctl.fd;
  request.client = driver->client;
  request.channel = channel.object;
  request.base = new_device_range(kPoolBytes);
  request.length = kPoolBytes;
  Subject subject;
  subject.client = driver->client;
  subject.object = channel.object;
  subject.base = request.base;
  subject.size = request.length;
  return uvm_ioctl(driver->uvm, nvos::kUvmRegisterChannel, request, subject);
}

void drop_channel(const Context& context, const Channel& channel) {
  nvos::UvmUnregisterChannel request = {};
  request.gpu = driver->gpus[context.gpu].uuid;
  request.client = driver->client;
  request.channel = channel.object;
  Subject subject;
  subject.client = driver->client;
  subject.object = channel.object;
  uvm_ioctl(driver->uvm, nvos::kUvmUnregisterChannel, request, subject);
  free_object(driver->under(context.group), channel.object);
  drop_memory(channel.fifo);
}

// Causes a page fault, which the driver sees, too.
void touch(void* page) {
  if (page) *static_cast<volatile char*>(page) = 1;
}

// The page that a launch writes to: its memory is reached through a separate descriptor.
void map_doorbell(Context& context) {
  const Gpu& gpu = driver->gpus[context.gpu];
  unsigned char parameters[2] = {1, 0};
  allocate_object(driver->under(gpu.subdevice), nvos::kUsermode, context.usermode, parameters,
                  sizeof parameters);
  context.doorbell = open_node(gpu.node.name);
  if (!context.doorbell.is_open()) return;
  register_fd(context.doorbell);
  nvos::MapMemory request = {};
  request.client = driver->client;
  request.device = gpu.device;
  request.memory = context.usermode;
  request.length = kDoorbellBytes;
  request.address = nodes_pretend() ? 0x100000000 : 0;
  request.fd = context.doorbell.fd;
  Subject subject;
  subject.number = nvos::kMapMemory;
  subject.client = request.client;
  subject.parent = request.device;
  subject.object = request.memory;
  subject.size = request.length;
  {
    Ioctl made(driver->ctl, subject, &request, sizeof request, &request.status);
    made.subject.base = request.address;
  }
  context.doorbell_page = map_node(context.doorbell, kDoorbellBytes);
  touch(context.doorbell_page);
}

void unmap_doorbell(Context& context) {
  if (context.doorbell.is_open()) {
    nvos::UnmapMemory request = {};
    request.client = driver->client;
    request.device = driver->gpus[context.gpu].device;
    request.memory = context.usermode;
    request.address = reinterpret_cast<uint64_t>(context.doorbell_page);
    Subject subject;
    subject.client = request.client;
    subject.parent = request.device;
    subject.object = request.memory;
    subject.base = request.address;
    escape(driver->ctl, nvos::kUnmapMemory, request, subject);
    if (context.doorbell_page) munmap(context.doorbell_page, kDoorbellBytes);
    close_node(context.doorbell);
  }
  free_object(driver->under(driver->gpus[context.gpu].subdevice), context.usermode);
}

// What the thread that waits for GPU errors does: its ioctls are not made in any call of the
// program.
void watch_events(Context& context) {
  pthread_setname_np(pthread_self(), "cuda-EvtHandlr");
  const Gpu& gpu = driver->gpus[context.gpu];
  context.events = open_node("nvidiactl");
  if (!context.events.is_open()) return;
  nvos::OsEvent event = {driver->client, gpu.device, static_cast<uint32_t>(context.events.fd), 0};
  Subject subject;
  subject.client = driver->client;
  subject.parent = gpu.device;
  escape(context.events, nvos::kAllocOsEvent, event, subject);
  poll_node(context.events, 10);
  nvos::EventData data = {};
  escape(context.events, nvos::kGetEventData, data);
}

Status make_context(Handle handle, Context& context) {
  const Gpu& gpu = driver->gpus[context.gpu];
  nvos::VaSpaceParams space = {};
  space.size = 1ULL << 49;
  uint32_t bad = allocate_object(driver->under(gpu.device), nvos::kVaSpace, context.va_space,
                                 &space, sizeof space);
  if (bad) return failure(bad);
  nvos::UvmRegisterVaSpace registered = {};
  registered.gpu = gpu.uuid;
  registered.fd = driver->ctl.fd;
  registered.client = driver->client;
  registered.va_space = context.va_space;
  uvm_ioctl(driver->uvm, nvos::kUvmRegisterVaSpace, registered);

  nvos::ChannelGroupParams group = {};
  group.va_space = context.va_space;
  group.engine = 1;
  bad = allocate_object(driver->under(gpu.device), nvos::kChannelGroup, context.group, &group,
                        sizeof group);
  if (bad) return failure(bad);
  nvos::ContextShareParams share = {context.va_space, 0, 0};
  allocate_object(driver->under(context.group), nvos::kContextShare, context.share, &share,
                  sizeof share);
  for (const uint32_t engine : {nvos::kCompute, nvos::kCopyEngine}) {
    bad = make_channel(handle, context, engine, context.channels.emplace_back());
    if (bad) return failure(bad);
  }
  unsigned char enable[3] = {1, 0, 0};
  control(driver->under(context.group), nvos::kSchedule, enable);
  Subject indirect;
  indirect.indirect = true;
  uint64_t timeslice_us = 2000;
  indirect.timeslice_us = timeslice_us;
  control(driver->under(context.group), nvos::kSetTimeslice, timeslice_us, indirect);

  map_doorbell(context);
  const auto pool = std::make_unique<nvos::UvmSemaphorePool>();
  context.pool = map_node(driver->uvm, kPoolBytes);
  touch(context.pool);
  pool->base = context.pool ? reinterpret_cast<uint64_t>(context.pool) : 0x200000000;
  pool->length = kPoolBytes;
  Subject subject;
  subject.base = pool->base;
  subject.size = pool->length;
  uvm_ioctl(driver->uvm, nvos::kUvmSemaphorePool, *pool, subject);
  std::thread([&context] { watch_events(context); }).join();
  return kSuccess;
}

}  // namespace

Status driver_create_context(Handle handle, int32_t device) {
  if (!settings().driver) return kSuccess;
  const auto context = std::make_shared<Context>();
  context->gpu = device;
  if (const Status bad = make_context(handle, *context)) return bad;
  const std::lock_guard lock(driver->mutex);
  driver->contexts[handle] = context;
  return kSuccess;
}

// Memory and streams that are left go with their parents.
void driver_destroy_context(Handle handle) {
  const auto context = context_of(handle);
  if (!context) return;
  {
    const std::lock_guard lock(driver->mutex);
    driver->contexts.erase(handle);
    const auto belongs = [handle](const auto& entry) { return entry.second.context == handle; };
    std::erase_if(driver->memory, belongs);
    std::erase_if(driver->streams, belongs);
  }
  if (context->pool) {
    unmap_for_gpu(driver->uvm, reinterpret_cast<uint64_t>(context->pool), kPoolBytes);
    munmap(context->pool, kPoolBytes);
  }
  unmap_doorbell(*context);
  for (const Channel& channel : context->channels) drop_channel(*context, channel);
  const Gpu& gpu = driver->gpus[context->gpu];
  nvos::UvmUnregisterVaSpace request = {gpu.uuid, 0};
  uvm_ioctl(driver->uvm, nvos::kUvmUnregisterVaSpace, request);
  free_object(driver->under(context->group), context->share);
  free_object(driver->under(gpu.device), context->group);
  free_object(driver->under(gpu.device), context->va_space);
  close_node(context->events);
}

Status driver_create_stream(Handle stream) {
  if (!settings().driver) return kSuccess;
  const Handle handle = current_context();
  const auto context = context_of(handle);
  if (!context) return kSuccess;
  Channel channel = {};
  if (const uint32_t bad = make_channel(handle, *context, nvos::kCompute, channel)) {
    return failure(bad);
  }
  const std::lock_guard lock(driver->mutex);
  driver->streams[stream] = channel;
  return kSuccess;
}

void driver_destroy_stream(Handle stream) {
  if (!settings().driver) return;
  Channel channel;
  {
    const std::lock_guard lock(driver->mutex);
    const auto found = driver->streams.find(stream);
    if (found == driver->streams.end()) return;
    channel = found->second;
    driver->streams.erase(found);
  }
  if (const auto context = context_of(channel.context)) drop_channel(*context, channel);
}

}  // namespace fake
