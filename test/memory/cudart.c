/* A CUDA runtime as far as it matters here: functions between a library and the driver, whose
 * frames are of every kind that compilers make without frame pointers. */
#include <alloca.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

typedef int (*sized)(uint64_t*, uint64_t);
typedef int (*flagged)(uint64_t*, uint64_t, unsigned);
typedef int (*queued)(uint64_t*, uint64_t, void*);
static sized device;
static flagged managed, host;
static queued async;

void cudartBegin(void* cuda) {
  device = (sized)dlsym(cuda, "cuMemAlloc_v2");
  managed = (flagged)dlsym(cuda, "cuMemAllocManaged");
  host = (flagged)dlsym(cuda, "cuMemHostAlloc");
  async = (queued)dlsym(cuda, "cuMemAllocAsync");
}

/* Saves every register that it may. */
NOINLINE int cudartPushes(uint64_t* pointer, uint64_t size, uint64_t depth) {
  uint64_t a = size ^ depth, b = size + depth, c = size - depth, d = size * depth, e = size | depth;
  int status = depth ? cudartPushes(pointer, size, depth - 1) : device(pointer, size);
  __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e));
  return status + (int)((a ^ b ^ c ^ d ^ e) & 0);
}

/* Its frame has a size that is known only when it runs. */
NOINLINE static int variable(uint64_t* pointer, uint64_t size) {
  char* room = alloca((size & 63) + 16);
  memset(room, 1, 16);
  int status = managed(pointer, size, 1);
  __asm__ volatile("" : : "r"(room) : "memory");
  return status;
}

/* Its frame is larger than what is kept of a stack. */
NOINLINE static int large(uint64_t* pointer, uint64_t size) {
  volatile char room[4096];
  room[size & 4095] = 1;
  return device(pointer, size) + (room[size & 4095] - 1);
}

int cudaMalloc(uint64_t* pointer, uint64_t size) { return cudartPushes(pointer, size, 3) + 0; }
int cudaMallocManaged(uint64_t* pointer, uint64_t size) { return variable(pointer, size) + 0; }
int cudaMallocHost(uint64_t* pointer, uint64_t size) { return host(pointer, size, 0) + 0; }
int cudaMallocAsync(uint64_t* pointer, uint64_t size) { return async(pointer, size, 0) + 0; }
int cudaMallocLarge(uint64_t* pointer, uint64_t size) { return large(pointer, size) + 0; }
