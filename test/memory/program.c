/* Allocates in several libraries, and says of each allocation who asked: a line of its size, the
 * holder and the result. Arguments: libcuda's path, and the folder of the libraries. */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*asking)(void*, const char*, uint64_t);

static const char* folder;

static void* load(const char* name) {
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  return library;
}

static void* runtime(const char* name, void* cuda) {
  void* library = load(name);
  ((void (*)(void*))dlsym(library, "cudartBegin"))(cuda);
  return library;
}

static uint64_t size = 1 << 20;

static void ask(void* from, void* library, const char* function, const char* holder) {
  size += 4096;
  int status = ((asking)dlsym(from, "ask"))(library, function, size);
  printf("%lu %s %d\n", size, holder, status);
}

static void ask_runtime(void* from, void* library, const char* holder) {
  ask(from, library, "cudaMalloc", holder);
  ask(from, library, "cudaMallocManaged", holder);
  ask(from, library, "cudaMallocHost", holder);
  ask(from, library, "cudaMallocAsync", holder);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  folder = arguments[2];
  void* cuda = dlopen(arguments[1], RTLD_NOW);
  uint64_t context = 0, pointer = 0;
  ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
  ((int (*)(uint64_t*, int))dlsym(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
  ((int (*)(uint64_t))dlsym(cuda, "cuCtxSetCurrent"))(context);
  void *cudart = runtime("libcudart.so.12.4.1", cuda), *bare = runtime("libcudart.so.11.0", cuda);
  void *alpha = load("libalpha.so.3.2"), *beta = load("libbeta.so.3.2");

  ask(beta, cuda, "cuMemAlloc_v2", "libbeta.so.3");
  ask_runtime(alpha, cudart, "libalpha.so.3");
  ask_runtime(beta, cudart, "libbeta.so.3");
  ask(alpha, cudart, "cudaMallocLarge", "-");
  ask(alpha, bare, "cudaMalloc", "-");
  size += 4096;
  int status = ((int (*)(uint64_t*, uint64_t))dlsym(cudart, "cudaMalloc"))(&pointer, size);
  printf("%lu holders_program %d\n", size, status);

  /* One library comes to lie where another was. */
  const char* names[] = {"libgamma.so", "libdelta.so"};
  for (int i = 0; i < 6; i++) {
    char file[64], holder[64];
    snprintf(file, sizeof(file), "%s.3.2", names[i % 2]);
    snprintf(holder, sizeof(holder), "%s.3", names[i % 2]);
    void* library = load(file);
    fprintf(stderr, "%p\n", dlsym(library, "ask"));
    ask_runtime(library, cudart, holder);
    ask(library, cuda, "cuMemAlloc_v2", holder);
    dlclose(library);
  }
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) { /* what it has of its parent's context is not of use, but it asks */
    ask(alpha, cudart, "cudaMalloc", "libalpha.so.3");
    fflush(stdout);
    _exit(0);
  }
  int ended = 0;
  return child < 0 || wait(&ended) != child;
}
