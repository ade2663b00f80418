#include "injection.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "gpu.hpp"

namespace fake {
namespace {

std::atomic<Injection> state{Injection::before};
std::mutex* one_at_a_time = new std::mutex;  // guards `tried`; a child of fork gets a new one
bool tried = false;
thread_local bool loading_here = false;

// True if there was one to call.
bool call_library() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (!path || !*path) return false;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (!initialize) return false;
  state.store(Injection::under_way);
  initialize();
  look_for_cupti();
  return true;
}

}  // namespace

Injection injection() { return state.load(std::memory_order_acquire); }

void load_injection() {
  if (injection() == Injection::after || loading_here) return;
  const std::lock_guard lock(*one_at_a_time);
  if (tried) return;
  loading_here = true;
  const bool called = call_library();
  loading_here = false;
  tried = true;
  if (called) state.store(Injection::after, std::memory_order_release);
}

void restart_injection() {
  if (loading_here) return;  // the library itself forked
  one_at_a_time = new std::mutex;
  if (!tried) state.store(Injection::before);
}

}  // namespace fake
