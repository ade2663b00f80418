// Writes where nothing is: the GPU faults, the driver tells of an Xid, and the program gets an error. Its status
// is 0 if it did.
#include <cstdio>

__global__ void write(int* where) { *where = 1; }

int main() {
  write<<<1, 1>>>(reinterpret_cast<int*>(0x10));
  cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(error));
  return error == cudaErrorIllegalAddress ? 0 : 1;
}
