#include "driver.hpp"

#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>

namespace workload {
namespace {

using GetProcAddress = Status(const char*, void**, int32_t, uint64_t, int32_t*);
constexpr int32_t kCudaVersion = 13000;
constexpr uint64_t kPerThreadStream = 2;

void* open_library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

void* by_dlsym(void* library, const std::string& symbol, bool per_thread) {
  if (per_thread) {
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      if (void* found = dlsym(library, (symbol + suffix).c_str())) return found;
    }
  }
  return dlsym(library, symbol.c_str());
}

void* by_driver(void* library, const char* api, bool per_thread) {
  static auto* get = reinterpret_cast<GetProcAddress*>(dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  if (get) get(api, &found, kCudaVersion, per_thread ? kPerThreadStream : 0, nullptr);
  return found;
}

void* find(void* library, const DriverOptions& options, const char* api, const char* symbol) {
  void* found = options.use_dlsym ? by_dlsym(library, symbol, options.per_thread)
                                  : by_driver(library, api, options.per_thread);
  if (!found) {
    fprintf(stderr, "%s has no %s\n", options.library.c_str(), api);
    exit(1);
  }
  return found;
}

}  // namespace

Driver::Driver(const DriverOptions& options) : library_(open_library(options.library)) {
#define CALL(api, symbol, ...) \
  api = reinterpret_cast<Status (*)(__VA_ARGS__)>(find(library_, options, #api, #symbol));
#include "functions.def"
#undef CALL
}

void* Driver::exported(const char* symbol) const { return dlsym(library_, symbol); }

void check(const Driver& driver, Status status, const char* what) {
  if (status == kSuccess) return;
  const char* name = nullptr;
  driver.cuGetErrorName(status, &name);
  fprintf(stderr, "%s: %s (%u)\n", what, name ? name : "unknown error", status);
  exit(1);
}

uint64_t monotonic_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

void sleep_us(uint64_t microseconds) {
  timespec left = {static_cast<time_t>(microseconds / 1000000),
                   static_cast<long>(microseconds % 1000000 * 1000)};
  while (nanosleep(&left, &left) != 0) {
  }
}

}  // namespace workload
