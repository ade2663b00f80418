// spins [--rounds N] [--busy US] [--rest US]: in each round a kernel that keeps the GPU busy for so
// long (by the GPU's own clock), then a pause of the host. Half of the kernels are two at once, in
// streams of their own, so that the sum of their times is more than the time in which the GPU is
// busy. Prints as JSON how long it must have been busy, and the pauses.
#include <unistd.h>

#include "driver.hpp"

int main(int argc, char** argv) {
  long rounds = option(argc, argv, "--rounds", 200), busy = option(argc, argv, "--busy", 3000),
       rest = option(argc, argv, "--rest", 2000);
  Device device;
  CUfunction spin = device.kernel("spin");
  CUstream streams[2];
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  unsigned long long ns = static_cast<unsigned long long>(busy) * 1000;
  void* arguments[] = {&ns};
  for (long i = 0; i < rounds; i++) {
    for (long j = 0; j <= i % 2; j++)
      CHECK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[j], arguments, nullptr));
    CHECK(cuCtxSynchronize());
    if (i + 1 < rounds) usleep(static_cast<useconds_t>(rest));
  }
  std::printf("{\"rounds\":%ld,\"busy_us\":%ld,\"rest_us\":%ld}\n", rounds, busy * rounds,
              rest * (rounds - 1));
}
