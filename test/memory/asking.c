/* A library that allocates: through a CUDA runtime, or from the driver, as with a runtime of its
 * own. */
#include <dlfcn.h>
#include <stdint.h>

typedef int (*sized)(uint64_t*, uint64_t);

__attribute__((noinline)) int ask(void* library, const char* function, uint64_t size) {
  uint64_t pointer = 0;
  sized allocate = (sized)dlsym(library, function);
  int status = allocate ? allocate(&pointer, size) : -1;
  __asm__ volatile("" : "+r"(status) : "m"(pointer));
  return status;
}
