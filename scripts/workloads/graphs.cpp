// graphs [--replays N] [--nodes N]: launches two graphs N times each, one captured from a stream
// and one built node by node. Prints what a launch of the captured one took.
#include <initializer_list>

#include "driver.hpp"

namespace {

constexpr long BEFORE_WAITING = 64;

double replay(CUgraphExec graph, CUstream stream, long replays) {
  double begin = now();
  for (long i = 1; i <= replays; i++) {
    CHECK(cuGraphLaunch(graph, stream));
    if (i % BEFORE_WAITING == 0) CHECK(cuStreamSynchronize(stream));
  }
  CHECK(cuStreamSynchronize(stream));
  return now() - begin;
}

CUgraph captured(CUstream stream, CUfunction bump, void** arguments, long nodes) {
  CUgraph graph = nullptr;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (long i = 0; i < nodes; i++)
    CHECK(cuLaunchKernel(bump, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
  CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraph assembled(CUfunction bump, void** arguments, long nodes) {
  CUgraph graph = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  CUgraphNode last = nullptr;
  for (long i = 0; i < nodes; i++) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = bump;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 32;
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments;
    CUgraphNode added = nullptr;
    CHECK(cuGraphAddKernelNode(&added, graph, last ? &last : nullptr, last ? 1 : 0, &node));
    last = added;
  }
  return graph;
}

}  // namespace

int main(int argc, char** argv) {
  long replays = option(argc, argv, "--replays", 1000), nodes = option(argc, argv, "--nodes", 20);
  if (replays < 1 || nodes < 1) {
    std::fprintf(stderr, "usage: graphs [--replays N] [--nodes N]\n");
    return 2;
  }
  Device device;
  CUfunction bump = device.kernel("bump");
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, 128));
  CHECK(cuMemsetD32(memory, 0, 32));
  void* arguments[] = {&memory};
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (bool capture : {false, true}) {
    CUgraph graph =
        capture ? captured(stream, bump, arguments, nodes) : assembled(bump, arguments, nodes);
    CUgraphExec ready = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&ready, graph, 0));
    double spent = replay(ready, stream, replays);
    if (capture) std::printf("us_per_replay=%.4f\n", spent * 1e6 / static_cast<double>(replays));
    CHECK(cuGraphExecDestroy(ready));
    CHECK(cuGraphDestroy(graph));
  }
  unsigned bumps = 0;
  CHECK(cuMemcpyDtoH(&bumps, memory, sizeof bumps));
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(memory));
  return bumps == 2 * replays * nodes ? 0 : 1;
}
