// products [--products N] [--rounds N]: asks cuBLAS for small products of matrices as fast as it
// can, and prints what asking for one took; with rounds, as loops.py does: after each, with the
// time of day.
#include <cublas_v2.h>

#include "driver.hpp"

int main(int argc, char** argv) {
  long products = option(argc, argv, "--products", 20'000),
       rounds = option(argc, argv, "--rounds", 0);
  if (products < 1 || rounds < 0) {
    std::fprintf(stderr, "usage: products [--products N] [--rounds N]\n");
    return 2;
  }
  constexpr int SIZE = 64,
                BEFORE_WAITING = 256;  // fewer than fill the queue, which would then block
  const Device device;
  device.use();
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, 3 * SIZE * SIZE * sizeof(float)));
  auto* matrix = reinterpret_cast<float*>(memory);
  cublasHandle_t handle = nullptr;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  auto us_per_product = [&] {
    const float one = 1, zero = 0;
    double spent = 0;
    long asked = 0;
    while (asked < products) {
      double begin = now();
      for (int i = 0; i < BEFORE_WAITING; i++, asked++)
        if (cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, matrix, SIZE,
                        matrix + SIZE * SIZE, SIZE, &zero, matrix + 2 * SIZE * SIZE,
                        SIZE) != CUBLAS_STATUS_SUCCESS)
          return -1.0;
      spent += now() - begin;
      CHECK(cuCtxSynchronize());
    }
    return spent * 1e6 / static_cast<double>(asked);
  };
  us_per_product();
  if (!rounds) std::printf("us_per_product=%.4f\n", us_per_product());
  for (; rounds > 0; rounds--) {
    double us = us_per_product();
    std::printf("product\t%.4f\t%.4f\n", time_of_day(), us);
    std::fflush(stdout);
  }
}
