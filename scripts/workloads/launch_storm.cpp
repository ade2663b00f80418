// launch_storm [--launches N] [--streams N] [--threads N] [--processes N] [--rounds N]: launches an
// empty kernel as fast as it can, N times on each thread of each process, on its streams in turn.
// It prints what a launch took; with rounds, as loops.py does: after each, with the time of day.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "driver.hpp"

namespace {

constexpr int WARM_UP = 1000,
              BEFORE_WAITING = 512;  // fewer than fill the queue, which would then block

void launch_all(const Device& device, long launches, long streams, long rounds) {
  device.use();
  CUfunction nothing = device.kernel("nothing");
  std::vector<CUstream> all(static_cast<std::size_t>(streams));
  for (auto& stream : all) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  auto some = [&](long count) {
    double spent = 0;
    while (count > 0) {
      double begin = now();
      for (long i = 0; i < BEFORE_WAITING && count > 0; i++, count--)
        CHECK(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0,
                             all[static_cast<std::size_t>(count % streams)], nullptr, nullptr));
      spent += now() - begin;
      for (auto stream : all) CHECK(cuStreamSynchronize(stream));
    }
    return spent;
  };
  some(WARM_UP);
  auto us_per_launch = [&] { return some(launches) * 1e6 / static_cast<double>(launches); };
  if (!rounds) std::printf("us_per_launch=%.4f\n", us_per_launch());
  for (; rounds > 0; rounds--) {
    double us = us_per_launch();
    std::printf("launch\t%.4f\t%.4f\n", time_of_day(), us);
    std::fflush(stdout);
  }
  for (auto stream : all) CHECK(cuStreamDestroy(stream));
}

void one_process(long launches, long streams, long threads, long rounds) {
  Device device;
  std::vector<std::thread> others;
  for (long i = 1; i < threads; i++)
    others.emplace_back([&] { launch_all(device, launches, streams, rounds); });
  launch_all(device, launches, streams, rounds);
  for (auto& thread : others) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  long launches = option(argc, argv, "--launches", 200'000),
       streams = option(argc, argv, "--streams", 1);
  long threads = option(argc, argv, "--threads", 1),
       processes = option(argc, argv, "--processes", 1), rounds = option(argc, argv, "--rounds", 0);
  if (launches < 1 || streams < 1 || threads < 1 || processes < 1 || rounds < 0) {
    std::fprintf(stderr,
                 "usage: launch_storm [--launches N] [--streams N] [--threads N] [--processes N] "
                 "[--rounds N]\n");
    return 2;
  }
  // CUDA does not survive a fork, so each child initializes it itself.
  for (long i = 1; i < processes; i++) {
    if (fork() == 0) {
      one_process(launches, streams, threads, rounds);
      return 0;
    }
  }
  one_process(launches, streams, threads, rounds);
  int status = 0, failed = 0;
  while (wait(&status) > 0) failed |= status;
  return failed ? 1 : 0;
}
