#include "compute.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "../objects.hpp"
#include "../settings.hpp"

namespace fake {
namespace {

constexpr uint64_t kBlock = 32 << 20;  // the driver reserves addresses in these
constexpr int kTries = 1000;

struct Range {
  uint64_t from, to;
};

struct Addresses {
  std::map<DevicePtr, uint64_t> memory;  // the program's
  std::map<DevicePtr, uint64_t> held;    // where nothing else goes
  std::vector<Range> taken;              // before cuInit
  DevicePtr next = 0;
};

Addresses& addresses() {
  static Addresses* all = new Addresses;
  return *all;
}

std::atomic<Status> sticky{kSuccess};
std::atomic<bool> hangs{false};

void* pointer(DevicePtr at) { return reinterpret_cast<void*>(at); }
uint64_t down(uint64_t at) { return at / kBlock * kBlock; }
uint64_t up(uint64_t at) { return down(at + kBlock - 1); }

bool overlaps(const std::vector<Range>& ranges, uint64_t from, uint64_t to) {
  for (const Range& range : ranges)
    if (from < range.to && range.from < to) return true;
  return false;
}

// Whether one of the held ranges has the address.
bool is_held(uint64_t at) {
  const auto& held = addresses().held;
  auto range = held.upper_bound(at);
  if (range == held.begin()) return false;
  --range;
  return at < range->first + range->second;
}

bool hold(uint64_t at, uint64_t size) {
  void* mapped = mmap(pointer(at), size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  addresses().held[at] = size;
  return true;
}

// Where a process begins differs, as the kernel's choice does.
DevicePtr first_address() {
  constexpr uint64_t kPlaces = 1 << 16;
  return 0x200000000000 + std::random_device{}() % kPlaces * kBlock;
}

}  // namespace

bool computes() { return settings().compute; }

std::optional<DevicePtr> hold_range(uint64_t size) {
  DevicePtr& next = addresses().next;
  if (!next) next = first_address();
  for (int i = 0; i < kTries; ++i) {
    const DevicePtr at = next;
    next += up(size);
    if (!overlaps(addresses().taken, at, at + size) && hold(at, size)) return at;
  }
  return std::nullopt;
}

std::optional<DevicePtr> hold_wanted(DevicePtr wanted, uint64_t size) {
  if (wanted % kBlock != 0 && !is_held(down(wanted))) wanted = up(wanted);
  if (!overlaps(addresses().taken, wanted, wanted + size) && hold(wanted, size)) return wanted;
  return hold_range(size);
}

// Blocks share what the driver has reserved, as small ones do in a real GPU's pages.
std::optional<DevicePtr> backed_range(uint64_t size) {
  constexpr uint64_t kUnit = 512;
  static DevicePtr next = 0, end = 0;
  size = (size + kUnit - 1) / kUnit * kUnit;
  if (size > end - next) {
    const auto range = hold_range(up(size));
    if (!range || mprotect(pointer(*range), up(size), PROT_READ | PROT_WRITE) != 0)
      return std::nullopt;
    next = *range;
    end = next + up(size);
  }
  next += size;
  return next - size;
}

void let_go(DevicePtr at, uint64_t size) {
  addresses().held.erase(at);
  munmap(pointer(at), size);
}

// As if the first process that comes had something mapped there.
static void note_what_a_test_takes() {
  const char* path = getenv("FAKE_CUDA_TAKEN");
  FILE* ranges = path ? fopen(path, "re") : nullptr;
  if (!ranges) return;
  unsigned long from = 0, to = 0;
  while (fscanf(ranges, "%lx %lx", &from, &to) == 2) addresses().taken.push_back({from, to});
  fclose(ranges);
  unlink(path);
}

void note_what_is_mapped() {
  addresses().taken.clear();
  note_what_a_test_takes();
  FILE* maps = fopen("/proc/self/maps", "re");
  if (!maps) return;
  unsigned long from = 0, to = 0;
  while (fscanf(maps, "%lx-%lx%*[^\n]", &from, &to) == 2)
    if (!is_held(from)) addresses().taken.push_back({from, to});
  fclose(maps);
}

int create_physical(uint64_t size) {
  const int memory = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, static_cast<off_t>(size)) == 0) return memory;
  close(memory);
  return -1;
}

void destroy_physical(int memory) { close(memory); }

bool map_physical(DevicePtr at, uint64_t size, int memory) {
  return mmap(pointer(at), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) !=
         MAP_FAILED;
}

void unmap_physical(DevicePtr at, uint64_t size) {
  mmap(pointer(at), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
}

void memory_begins(DevicePtr at, uint64_t size) { addresses().memory[at] = size; }
void memory_ends(DevicePtr at) { addresses().memory.erase(at); }

bool is_memory(DevicePtr at, uint64_t size) {
  const auto& memory = addresses().memory;
  for (uint64_t from = at; from < at + size;) {  // what is mapped side by side is one
    auto range = memory.upper_bound(from);
    if (range == memory.begin()) return false;
    --range;
    if (from >= range->first + range->second) return false;
    from = range->first + range->second;
  }
  return true;
}

namespace {

// On the host, or the program's memory on a device.
bool may_access(uint64_t at, uint64_t size) {
  const std::lock_guard lock(state_mutex());
  return !is_held(at) || is_memory(at, size);
}

uint64_t extent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

}  // namespace

Action copy_action(uint64_t to, uint64_t from, const Rows& rows) {
  if (!computes() || !rows.width || !rows.height || !rows.depth) return {};
  return [=] {
    const auto all = [&](uint64_t pitch, uint64_t slice) {
      return extent(rows.width, rows.height, rows.depth, pitch, slice);
    };
    if (!may_access(to, all(rows.to_pitch, rows.to_slice)) ||
        !may_access(from, all(rows.from_pitch, rows.from_slice)))
      return kInvalidValue;
    for (uint64_t z = 0; z < rows.depth; ++z)
      for (uint64_t y = 0; y < rows.height; ++y)
        memmove(pointer(to + z * rows.to_slice + y * rows.to_pitch),
                pointer(from + z * rows.from_slice + y * rows.from_pitch), rows.width);
    return kSuccess;
  };
}

Action fill_action(DevicePtr to, uint32_t value, uint64_t element_size, uint64_t width,
                   uint64_t height, uint64_t pitch) {
  if (!computes() || !width || !height) return {};
  return [=] {
    if (!may_access(to, extent(width * element_size, height, 1, pitch, 0))) return kInvalidValue;
    for (uint64_t y = 0; y < height; ++y) {
      if (element_size == 1) memset(pointer(to + y * pitch), static_cast<int>(value), width);
      for (uint64_t x = 0; element_size != 1 && x < width; ++x)
        memcpy(pointer(to + y * pitch + x * element_size), &value, element_size);
    }
    return kSuccess;
  };
}

Status sticky_error() { return sticky.load(std::memory_order_relaxed); }
void gpu_faults(Status status) { sticky.store(status); }

void wait_for_gpu() {
  while (hangs.load(std::memory_order_relaxed)) pause();
}
void gpu_hangs() { hangs.store(true); }

}  // namespace fake
