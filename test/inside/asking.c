/* A library that calls the driver as libcuda does, by libc's functions, and loads the library
 * inside as libcuda does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int call_driver(const char* device, unsigned long command, void* argument) {
  int fd = open(device, O_RDWR);
  int result = ioctl(fd, command, argument) < 0 ? -errno : 0;
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  poll(&polled, 1, 0);
  void* memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory != MAP_FAILED) munmap(memory, 4096);
  close(fd);
  return result;
}

int load_injection(int (*initialize)(void)) { return initialize() == 1; }
