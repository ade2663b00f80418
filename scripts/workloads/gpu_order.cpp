// gpu_order [--threads N] [--launches N]: threads that launch kernels, copy and fill, each in turn
// into streams that all of them use, at the same time. Each launch has an amount of shared memory
// of its own in its thread, by which a kernel on the GPU can be distinguished from its like.
#include <thread>
#include <vector>

#include "driver.hpp"

namespace {

constexpr unsigned MAX_SHARED = 40000;
constexpr long BEFORE_WAITING = 200;

void work(const Device& device, CUfunction nothing, CUdeviceptr memory,
          const std::vector<CUstream>& streams, long number, long launches) {
  device.use();
  char host[4096] = {};
  for (long i = 0; i < launches; i++) {
    CUstream stream = streams[static_cast<size_t>(i * 7 + number) % streams.size()];
    auto unlike = static_cast<unsigned>(number * launches + i);
    if (i % 5 == 3)
      CHECK(cuMemsetD8Async(memory, 0, 1 + unlike % 1000000, stream));
    else if (i % 5 == 4)
      CHECK(cuMemcpyHtoDAsync(memory, host, 1 + unlike % sizeof(host), stream));
    else
      CHECK(cuLaunchKernel(nothing, 1 + static_cast<unsigned>(i % 3), 1, 1, 32, 1, 1,
                           unlike % MAX_SHARED, stream, nullptr, nullptr));
    if (i % BEFORE_WAITING == BEFORE_WAITING - 1) CHECK(cuStreamSynchronize(stream));
  }
}

}  // namespace

int main(int argc, char** argv) {
  long threads = option(argc, argv, "--threads", 3),
       launches = option(argc, argv, "--launches", 5000);
  Device device;
  CUfunction nothing = device.kernel("nothing");
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, 1 << 20));
  std::vector<CUstream> streams(3, nullptr);  // and the default one, last
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  streams.push_back(nullptr);
  std::vector<std::thread> all;
  for (long number = 0; number < threads; number++)
    all.emplace_back(work, std::cref(device), nothing, memory, std::cref(streams), number,
                     launches);
  for (std::thread& thread : all) thread.join();
  CHECK(cuCtxSynchronize());
  CHECK(cuMemFree(memory));
}
