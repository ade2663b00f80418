// A library for CUDA_INJECTION64_PATH, such as profilers have one. It writes its process's id to
// the file that OTHER_INJECTION_MARKS names, whenever libcuda calls it.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = getenv("OTHER_INJECTION_MARKS");
  if (!path) return 0;
  char line[32];
  const int size = snprintf(line, sizeof line, "%d\n", static_cast<int>(getpid()));
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written = write(file, line, static_cast<size_t>(size)) == size;
  close(file);
  return written;
}
