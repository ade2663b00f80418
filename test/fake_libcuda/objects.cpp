#include "objects.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "settings.hpp"

namespace fake {
namespace {

constexpr int kWords = 8;
constexpr int kCapacity = 65536;
constexpr uint64_t kMagic = 0x46554e4346554e43;

struct Function {
  uint64_t words[kWords];
};

Function functions[kCapacity];
char* names[kCapacity];  // of the live ones; null when free
int next_free[kCapacity];
int first_free = -1;
int used = 0;

int index_of(Handle handle) {
  const uint64_t offset =
      reinterpret_cast<uint64_t>(handle) - reinterpret_cast<uint64_t>(functions);
  if (offset >= sizeof functions || offset % sizeof(Function) != 0) return -1;
  return static_cast<int>(offset / sizeof(Function));
}

void write_name(Function& function, const char* name) {
  const int offset = settings().name_offset;
  if (offset == kNameNowhere) {
    function.words[1] = 7;
    return;
  }
  function.words[1] = reinterpret_cast<uint64_t>("not_the_name");
  function.words[offset / 8] = reinterpret_cast<uint64_t>(name);
}

}  // namespace

std::mutex& state_mutex() {
  static std::mutex* mutex = new std::mutex;
  return *mutex;
}

Handle new_handle() {
  static std::atomic<uint64_t> next{0x560000001000};
  return reinterpret_cast<Handle>(next.fetch_add(64));
}

// Far below all that the kernel places by itself: the host's memory must not get the same
// addresses, for there is one address space.
DevicePtr new_device_range(uint64_t size) {
  static std::atomic<uint64_t> next{0x200000000000};
  return next.fetch_add((size + 511) / 512 * 512);
}

Handle new_function(const char* name) {
  int index = first_free;
  if (index >= 0) {
    first_free = next_free[index];
  } else {
    if (used == kCapacity) abort();
    index = used++;
  }
  names[index] = strdup(name);
  functions[index] = {};
  functions[index].words[0] = kMagic;
  write_name(functions[index], names[index]);
  return &functions[index];
}

void free_function(Handle handle) {
  const int index = index_of(handle);
  if (index < 0 || !names[index]) return;
  functions[index] = {};
  free(names[index]);
  names[index] = nullptr;
  next_free[index] = first_free;
  first_free = index;
}

const char* function_name(Handle handle) {
  const int index = index_of(handle);
  return index < 0 ? nullptr : names[index];
}

}  // namespace fake
