// What tracers see of PyTorch's allocator: the probes of libc10_cuda.so, each at several places,
// with arguments in all kinds of places, and segments that it reserves. README.md says what is
// simulated.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))
// As the macros of <sys/sdt.h> leave a probe: a nop, and a note that says where it is.
#define NOTE(provider, name, semaphore, arguments)                        \
  "990: nop\n"                                                            \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
  ".balign 4\n"                                                           \
  ".4byte 992f-991f, 994f-993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                             \
  "992: .balign 4\n"                                                      \
  "993: .8byte 990b\n"                                                    \
  ".8byte _.stapsdt.base\n"                                               \
  ".8byte " semaphore                                                     \
  "\n"                                                                    \
  ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments     \
  "\"\n"                                                                  \
  "994: .balign 4\n"                                                      \
  ".popsection\n"                                                         \
  ".ifndef _.stapsdt.base\n"                                              \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n"                                                \
  ".hidden _.stapsdt.base\n"                                              \
  "_.stapsdt.base: .space 1\n"                                            \
  ".size _.stapsdt.base, 1\n"                                             \
  ".popsection\n"                                                         \
  ".endif\n"
#define MALLOC(arguments) NOTE("pytorch", "malloc", "pytorch_malloc_semaphore", arguments)
#define FREE(arguments) NOTE("pytorch", "free", "pytorch_free_semaphore", arguments)

#define SEMAPHORE(name) \
  __attribute__((section(".probes"), used, visibility("hidden"))) volatile unsigned short name
SEMAPHORE(pytorch_malloc_semaphore);
SEMAPHORE(pytorch_free_semaphore);

// How many tracers the probes have.
EXPORTED int probes_raised(void) { return pytorch_malloc_semaphore | pytorch_free_semaphore << 16; }

EXPORTED void block_allocated(int place, uintptr_t ptr, int device, size_t size,
                              uintptr_t stream_id) {
  if (!pytorch_malloc_semaphore) return;
  volatile struct {
    signed char device;
    size_t size;
  } kept = {(signed char)device, size};
  uintptr_t table[4] = {0, 0, stream_id, 0};
  uintptr_t* last = table + 4;
  switch (place) {
    case 0:
      __asm__ volatile(
          MALLOC("8@%[ptr] -4@%[device] 8@%[size] 8@%[stream]")
          :
          : [ptr] "r"(ptr), [device] "r"(device), [size] "r"(size), [stream] "r"(stream_id)
          : "memory");
      break;
    case 1:
      __asm__ volatile(MALLOC("-8@%[ptr] -1@%[device] -8@%[size] -8@(%[last],%[back],8)")
                       :
                       : [ptr] "m"(ptr), [device] "m"(kept.device), [size] "m"(kept.size),
                         [last] "r"(last), [back] "r"((intptr_t)-2)
                       : "memory");
      break;
    case 2:  // whoever asks for it gives a size of 1 << 20, and the default stream
      __asm__ volatile(MALLOC("8@%[ptr] -4@%[device] 8@%[size] 8@%[stream]")
                       :
                       : [ptr] "r"(ptr), [device] "m"(device), [size] "i"(1 << 20), [stream] "i"(0)
                       : "memory");
      break;
#ifdef STRANGE  // an address that is relative to the code's
    case 3:
      __asm__ volatile(MALLOC("8@%[ptr] -4@%[device] 8@%[size] 8@pytorch_malloc_semaphore+4(%%rip)")
                       :
                       : [ptr] "r"(ptr), [device] "r"(device), [size] "r"(size)
                       : "memory");
#endif
  }
}

EXPORTED void block_freed(int place, uintptr_t ptr) {
  if (!pytorch_free_semaphore) return;
  volatile uintptr_t kept = ptr;
  if (place)
    __asm__ volatile(FREE("8@%[ptr]") : : [ptr] "m"(kept) : "memory");
  else
    __asm__ volatile(FREE("8@%[ptr]") : : [ptr] "r"(ptr) : "memory");
}

// Others' probes, and one that PyTorch does not have yet.
EXPORTED void other_probes(uintptr_t ptr) {
  __asm__ volatile(NOTE("pytorch", "moved", "0", "8@%[ptr]") : : [ptr] "r"(ptr) : "memory");
  __asm__ volatile(NOTE("other", "malloc", "0", "8@%[ptr]") : : [ptr] "r"(ptr) : "memory");
}

// Segments: what the allocator reserves.
EXPORTED uintptr_t reserve(size_t size) {
  int (*allocate)(uintptr_t*, size_t) =
      (int (*)(uintptr_t*, size_t))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  uintptr_t ptr = 0;
  return allocate && allocate(&ptr, size) == 0 ? ptr : 0;
}
EXPORTED int release(uintptr_t ptr) {
  int (*free_memory)(uintptr_t) = (int (*)(uintptr_t))dlsym(RTLD_DEFAULT, "cuMemFree_v2");
  return free_memory ? free_memory(ptr) : -1;
}
