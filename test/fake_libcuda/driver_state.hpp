// What the kernel driver holds for a process, in the simulated libcuda: shared by the parts of
// driver.hpp.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "resources.hpp"
#include "types.hpp"

namespace fake {

struct Gpu {
  Node node;
  uint32_t device = 0, subdevice = 0;
  nvos::Uuid uuid = {};
};

struct GpuMemory {
  Handle context;
  uint32_t object, parent;
  uint64_t base, size;
};

struct Channel {
  Handle context;
  uint32_t object;
  GpuMemory fifo;
};

struct Context {
  int32_t gpu = 0;
  uint32_t va_space = 0, group = 0, share = 0, usermode = 0;
  std::vector<Channel> channels;
  Node doorbell, events;
  void* doorbell_page = nullptr;
  void* pool = nullptr;
};

enum class Kind { device, host, code };

// What the kernel driver holds for a process. The mutex guards the maps; it is not held during an
// ioctl.
struct Driver {
  std::mutex starting, mutex;
  bool started = false;
  Node ctl, uvm, uvm_memory;
  uint32_t client = 0;
  std::vector<Gpu> gpus;
  std::map<Handle, std::shared_ptr<Context>> contexts;
  std::map<std::pair<Kind, uint64_t>, GpuMemory> memory;
  std::map<Handle, Channel> streams;

  Parent under(uint32_t object) const { return {ctl, client, object}; }
};

extern Driver* driver;

Status failure(uint32_t status);  // the result of a call whose ioctl had this status
std::shared_ptr<Context> context_of(Handle handle);  // null if there is none
void register_fd(const Node& node);  // registers one more descriptor with the client's

// Memory of a class, or memory that a program already has at `host` and the GPU sees at `base`.
uint32_t make_memory(Handle handle, const Context& context, uint32_t klass, void* host,
                     uint64_t base, uint64_t size, GpuMemory& memory);
void drop_memory(const GpuMemory& memory);

}  // namespace fake
