// runtime_api [ROUNDS]: what programs do through the runtime API: streams, events, kernels with
// shared memory, copies in rows, managed and stream-ordered memory, a captured graph, and a kernel
// launched by cudaLaunchKernelExC. Built with --default-stream per-thread, it makes the driver calls
// for per-thread streams.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define CHECK(call)                                                                            \
  do {                                                                                         \
    cudaError_t error = (call);                                                                \
    if (error != cudaSuccess) {                                                                \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error));        \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

template <typename Number>
__global__ void scale(Number* numbers, Number by, int count) {
  extern __shared__ char staged[];
  auto* mine = reinterpret_cast<Number*>(staged);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  mine[threadIdx.x] = numbers[i];
  numbers[i] = mine[threadIdx.x] * by;
}

namespace {

constexpr int COUNT = 4096, BLOCK = 128;

void kernels(cudaStream_t stream) {
  float* floats = nullptr;
  double* doubles = nullptr;
  CHECK(cudaMalloc(&floats, COUNT * sizeof *floats));
  CHECK(cudaMallocAsync(&doubles, COUNT * sizeof *doubles, stream));
  CHECK(cudaMemsetAsync(floats, 0, COUNT * sizeof *floats, stream));
  CHECK(cudaMemsetAsync(doubles, 0, COUNT * sizeof *doubles, stream));
  scale<<<COUNT / BLOCK, BLOCK, BLOCK * sizeof(float), stream>>>(floats, 2.0f, COUNT);
  scale<<<dim3(COUNT / BLOCK / 2, 2), BLOCK, BLOCK * sizeof(double), stream>>>(doubles, 2.0, COUNT);
  scale<<<COUNT / BLOCK, BLOCK, BLOCK * sizeof(float)>>>(floats, 2.0f, COUNT);
  cudaLaunchConfig_t config{};
  config.gridDim = COUNT / BLOCK;
  config.blockDim = BLOCK;
  config.dynamicSmemBytes = BLOCK * sizeof(float);
  config.stream = stream;
  CHECK(cudaLaunchKernelEx(&config, scale<float>, floats, 3.0f, COUNT));
  CHECK(cudaFreeAsync(doubles, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(floats));
}

void copies(cudaStream_t stream) {
  std::vector<char> host(1 << 16);
  void *pinned = nullptr, *device = nullptr, *rows = nullptr, *managed = nullptr;
  std::size_t pitch = 0;
  CHECK(cudaMallocHost(&pinned, host.size()));
  CHECK(cudaMalloc(&device, host.size()));
  CHECK(cudaMallocPitch(&rows, &pitch, 100, 64));
  CHECK(cudaMallocManaged(&managed, host.size()));
  CHECK(cudaMemcpy(device, host.data(), host.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(managed, device, host.size(), cudaMemcpyDefault));
  CHECK(cudaMemcpyAsync(device, pinned, host.size(), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpy2D(rows, pitch, host.data(), 100, 100, 64, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2DAsync(pinned, 100, rows, pitch, 100, 64, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaMemcpyAsync(pinned, device, host.size(), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(host.data(), device, host.size(), cudaMemcpyDeviceToHost));
  for (void* memory : {device, rows, managed}) CHECK(cudaFree(memory));
  CHECK(cudaFreeHost(pinned));
}

void graph(cudaStream_t stream) {
  float* floats = nullptr;
  CHECK(cudaMalloc(&floats, COUNT * sizeof *floats));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemsetAsync(floats, 0, COUNT * sizeof *floats, stream));
  for (int i = 0; i < 3; i++) scale<<<COUNT / BLOCK, BLOCK, BLOCK * sizeof(float), stream>>>(floats, 2.0f, COUNT);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
  for (int i = 0; i < 5; i++) CHECK(cudaGraphLaunch(ready, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(ready));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(floats));
}

void everything(int rounds) {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&done));
  for (int i = 0; i < rounds; i++) {
    kernels(stream);
    copies(stream);
    graph(stream);
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaEventSynchronize(done));
  }
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 3;
  std::thread other(everything, rounds);
  everything(rounds);
  other.join();
  CHECK(cudaDeviceSynchronize());
}
