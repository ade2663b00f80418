// The cost of an ioctl that is not the NVIDIA driver's (on a pipe), and of another system call (for
// the parent's pid).
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

template <typename Call>
double ns_of(long count, Call call) {
  auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < count; i++) call();
  std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(count);
}

int main(int argc, char** argv) {
  long count = argc > 1 ? std::atol(argv[1]) : 1'000'000;
  int ends[2], waiting = 0;
  if (pipe(ends) != 0) return 1;
  double ioctl_ns = ns_of(count, [&] { ioctl(ends[0], FIONREAD, &waiting); });
  double other_ns = ns_of(count, [] { syscall(SYS_getppid); });
  std::printf("ioctl_ns=%.1f other_ns=%.1f\n", ioctl_ns, other_ns);
}
