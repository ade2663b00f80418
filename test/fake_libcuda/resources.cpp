#include "resources.hpp"

#include <atomic>
#include <memory>

namespace fake {

uint32_t new_object_handle() {
  static std::atomic<uint32_t> next{0x5c000001};
  return next.fetch_add(1);
}

template <typename Request>
uint32_t allocate_object(const Parent& parent, uint32_t klass, uint32_t& object, void* parameters,
                         uint32_t size) {
  Request request = {};
  request.root = parent.client;
  request.parent = parent.object;
  if (klass != nvos::kClient || nodes_pretend()) request.object = new_object_handle();
  request.klass = klass;
  request.parameters = reinterpret_cast<uint64_t>(parameters);
  request.parameters_size = size;
  Subject subject;
  subject.number = nvos::kAlloc;
  subject.klass = klass;
  subject.client = parent.client;
  subject.parent = parent.object;
  if (klass == nvos::kVideoMemory || klass == nvos::kSystemMemory) {
    subject.size = static_cast<const nvos::MemoryParams*>(parameters)->size;
  }
  Ioctl made(parent.node, subject, &request, sizeof request, &request.status);
  made.subject.object = object = request.object;
  return made.status();
}
template uint32_t allocate_object<nvos::Alloc21>(const Parent&, uint32_t, uint32_t&, void*,
                                                 uint32_t);
template uint32_t allocate_object<nvos::Alloc64>(const Parent&, uint32_t, uint32_t&, void*,
                                                 uint32_t);

uint32_t allocate_memory(const Parent& parent, uint32_t klass, uint32_t& object, uint64_t bytes,
                         uint32_t va_space) {
  nvos::MemoryParams parameters = {};
  parameters.owner = parent.client;
  parameters.attributes = 0x18000000;
  parameters.size = bytes;
  parameters.alignment = 4096;
  parameters.va_space = va_space;
  return allocate_object(parent, klass, object, &parameters, sizeof parameters);
}

// Memory that a program already has.
uint32_t describe_memory(const Parent& parent, uint32_t& object, void* address, uint64_t bytes) {
  nvos::AllocMemory request = {};
  request.root = parent.client;
  request.parent = parent.object;
  request.object = object = new_object_handle();
  request.klass = nvos::kOsDescriptor;
  request.memory = reinterpret_cast<uint64_t>(address);
  request.limit = bytes - 1;
  request.fd = -1;
  Subject subject;
  subject.klass = request.klass;
  subject.client = parent.client;
  subject.parent = parent.object;
  subject.object = object;
  subject.size = bytes;
  subject.base = request.memory;
  return escape(parent.node, nvos::kAllocMemory, request, subject);
}

uint32_t free_object(const Parent& parent, uint32_t object) {
  nvos::Free request = {parent.client, parent.object, object, 0};
  Subject subject;
  subject.client = parent.client;
  subject.parent = parent.object;
  subject.object = object;
  return escape(parent.node, nvos::kFree, request, subject);
}

uint32_t map_for_gpu(const Node& uvm, const Parent& memory, const nvos::Uuid& gpu, uint64_t base,
                     uint64_t bytes) {
  Subject subject;
  subject.base = base;
  subject.size = bytes;
  nvos::UvmRange range = {base, bytes, 0, 0};
  if (const uint32_t bad = uvm_ioctl(uvm, nvos::kUvmCreateRange, range, subject)) return bad;
  const auto request = std::make_unique<nvos::UvmMapExternal>();
  request->base = base;
  request->length = bytes;
  request->gpus[0].gpu = gpu;
  request->gpu_count = 1;
  request->fd = memory.node.fd;
  request->client = memory.client;
  request->memory = memory.object;
  subject.client = memory.client;
  subject.object = memory.object;
  return uvm_ioctl(uvm, nvos::kUvmMapExternal, *request, subject);
}

uint32_t unmap_for_gpu(const Node& uvm, uint64_t base, uint64_t bytes) {
  Subject subject;
  subject.base = base;
  subject.size = bytes;
  nvos::UvmRange range = {base, bytes, 0, 0};
  return uvm_ioctl(uvm, nvos::kUvmFree, range, subject);
}

}  // namespace fake
