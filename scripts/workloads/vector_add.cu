// The smallest CUDA program with everything in it: memory, copies both ways, launches, synchronization.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                \
  do {                                                                             \
    cudaError_t error = (call);                                                    \
    if (error != cudaSuccess) {                                                    \
      fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(error));        \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

__global__ void add(const float* a, const float* b, float* sum, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

// vector_add [MILLISECONDS]: given a number, it launches another kernel every 10 ms for that long.
int main(int argc, char** argv) {
  const int count = 1 << 20;
  const size_t bytes = count * sizeof(float);
  std::vector<float> host(count, 1.5f);
  float *a = nullptr, *b = nullptr, *sum = nullptr;
  CHECK(cudaMalloc(&a, bytes));
  CHECK(cudaMalloc(&b, bytes));
  CHECK(cudaMalloc(&sum, bytes));
  CHECK(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, host.data(), bytes, cudaMemcpyHostToDevice));
  for (int round = 0; round < 16; ++round) add<<<(count + 255) / 256, 256>>>(a, b, sum, count);
  CHECK(cudaGetLastError());
  for (int left = argc > 1 ? atoi(argv[1]) : 0; left > 0; left -= 10) {
    usleep(10000);
    add<<<(count + 255) / 256, 256>>>(a, b, sum, count);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), sum, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(sum));
  printf("sum: %g\n", host[count - 1]);
  return host[count - 1] == 3.0f ? 0 : 1;
}
