// ranges [--ranges N] [--rounds N]: pushes and pops ranges of NVTX as fast as it can, and prints
// what one took; with rounds, as loops.py does: after each, with the time of day.
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include "driver.hpp"

int main(int argc, char** argv) {
  long ranges = option(argc, argv, "--ranges", 50'000), rounds = option(argc, argv, "--rounds", 0);
  if (ranges < 1 || rounds < 0) {
    std::fprintf(stderr, "usage: ranges [--ranges N] [--rounds N]\n");
    return 2;
  }
  const Device device;
  auto us_per_range = [&] {
    constexpr long BURST = 100;  // as with a program that also works: 100,000 a second
    double spent = 0;
    for (long left = ranges; left > 0; left -= BURST) {
      double begin = now();
      for (long i = 0; i < BURST; i++) {
        nvtxRangePushA("a layer of the model");
        nvtxRangePop();
      }
      spent += now() - begin;
      usleep(1000);
    }
    return spent * 1e6 / static_cast<double>((ranges + BURST - 1) / BURST * BURST);
  };
  us_per_range();
  if (!rounds) std::printf("us_per_range=%.4f\n", us_per_range());
  for (; rounds > 0; rounds--) {
    double us = us_per_range();
    std::printf("range\t%.4f\t%.4f\n", time_of_day(), us);
    std::fflush(stdout);
  }
}
