// graph_changes [--launches N]: makes graphs in every way that there is, changes them and what was
// instantiated of them, and launches each N times. Prints how often kernels must have run, and
// fails if they did not.
#include <vector>

#include "driver.hpp"

namespace {

#if CUDA_VERSION >= 13000
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                  CUgraphNodeParams* params) {
  return cuGraphAddNode(node, graph, after, nullptr, after ? 1 : 0, params);
}
#else
CUresult add_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                  CUgraphNodeParams* params) {
  return cuGraphAddNode(node, graph, after, after ? 1 : 0, params);
}
#endif

constexpr unsigned LANES = 32;

// Launches graphs of kernels that each add one to the same 32 numbers, and knows what these must
// be.
class Bumps {
 public:
  Bumps(const Device& device, long launches)
      : launches_(launches), context_(device.context()), bump_(device.kernel("bump")) {
    CHECK(cuMemAlloc(&memory_, LANES * sizeof(unsigned)));
    CHECK(cuMemAlloc(&aside_, LANES * sizeof(unsigned)));
    CHECK(cuMemsetD32(memory_, 0, LANES));
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&other_stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&begun_, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&done_, CU_EVENT_DISABLE_TIMING));
  }
  ~Bumps() {
    CHECK(cuEventDestroy(begun_));
    CHECK(cuEventDestroy(done_));
    CHECK(cuStreamDestroy(stream_));
    CHECK(cuStreamDestroy(other_stream_));
    CHECK(cuMemFree(memory_));
    CHECK(cuMemFree(aside_));
  }
  Bumps(const Bumps&) = delete;
  Bumps& operator=(const Bumps&) = delete;

  CUcontext context() const { return context_; }
  CUdeviceptr aside() const { return aside_; }
  CUstream stream() const { return stream_; }

  // One block of 32 threads, with so much shared memory, which distinguishes nodes.
  CUDA_KERNEL_NODE_PARAMS node(unsigned shared = 0) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = bump_;
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = LANES;
    node.blockDimY = node.blockDimZ = 1;
    node.sharedMemBytes = shared;
    node.kernelParams = arguments_;
    return node;
  }
  CUgraphNode add(CUgraph graph, unsigned shared = 0, const CUgraphNode* after = nullptr) {
    CUgraphNode added = nullptr;
    CUDA_KERNEL_NODE_PARAMS params = node(shared);
    CHECK(cuGraphAddKernelNode(&added, graph, after, after ? 1 : 0, &params));
    return added;
  }
  void launch(CUstream stream, unsigned shared = 0) {
    CHECK(cuLaunchKernel(bump_, 1, 1, 1, LANES, 1, 1, shared, stream, arguments_, nullptr));
  }
  // One stream begins, the other joins it and is joined again.
  void launch_forked() {
    launch(stream_, 1);
    CHECK(cuEventRecord(begun_, stream_));
    CHECK(cuStreamWaitEvent(other_stream_, begun_, 0));
    CHECK(cuMemcpyDtoDAsync(aside_, memory_, 64, other_stream_));
    CHECK(cuMemsetD8Async(aside_, 0, 16, other_stream_));
    CHECK(cuEventRecord(done_, other_stream_));
    CHECK(cuStreamWaitEvent(stream_, done_, 0));
    launch(stream_, 2);
  }

  // So many bumps are in it.
  void run(CUgraphExec graph, unsigned bumps) {
    for (long i = 0; i < launches_; i++) CHECK(cuGraphLaunch(graph, stream_));
    CHECK(cuStreamSynchronize(stream_));
    expected_ += static_cast<unsigned>(launches_) * bumps;
  }
  void run(CUgraph graph, unsigned bumps) {
    CUgraphExec made = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&made, graph, 0));
    run(made, bumps);
    CHECK(cuGraphExecDestroy(made));
  }

  bool are_right() const {
    unsigned counted[LANES];
    CHECK(cuMemcpyDtoH(counted, memory_, sizeof counted));
    std::printf("bumps=%u expected=%u\n", counted[0], expected_);
    for (unsigned count : counted)
      if (count != expected_) return false;
    return true;
  }

 private:
  long launches_;
  unsigned expected_ = 0;
  CUcontext context_;
  CUfunction bump_;
  CUdeviceptr memory_ = 0, aside_ = 0;
  void* arguments_[1] = {&memory_};
  CUstream stream_ = nullptr, other_stream_ = nullptr;
  CUevent begun_ = nullptr, done_ = nullptr;
};

CUgraph new_graph() {
  CUgraph graph = nullptr;
  CHECK(cuGraphCreate(&graph, 0));
  return graph;
}

CUgraphExec instantiated(CUgraph graph) {
  CUgraphExec made = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&made, graph, 0));
  return made;
}

CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS fill_of(CUdeviceptr what, std::size_t bytes) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = what;
  fill.elementSize = 1;
  fill.width = bytes;
  fill.height = 1;
  return fill;
}

// Ones, from here to there, where there were zeros.
void must_be_copied(CUdeviceptr to, std::size_t from, std::size_t end) {
  unsigned char bytes[64];
  CHECK(cuMemcpyDtoH(bytes, to, sizeof bytes));
  for (std::size_t i = 0; i < sizeof bytes; i++) {
    if (bytes[i] == (i >= from && i < end)) continue;
    std::fprintf(stderr, "byte %zu is %d\n", i, bytes[i]);
    std::exit(1);
  }
}

void node_by_node(Bumps& bumps) {
  CUgraph graph = new_graph();
  CUgraphNode first = bumps.add(graph, 1), second = bumps.add(graph, 2, &first), copied, filled;
  CUDA_MEMCPY3D copy = copy_of(bumps.aside(), bumps.aside() + 64, 48);
  CUDA_MEMSET_NODE_PARAMS fill = fill_of(bumps.aside(), 24);
  CHECK(cuGraphAddMemcpyNode(&copied, graph, &second, 1, &copy, bumps.context()));
  CHECK(cuGraphAddMemsetNode(&filled, graph, &copied, 1, &fill, bumps.context()));
  CUgraphExec made = instantiated(graph);
  bumps.run(made, 2);

  CUDA_KERNEL_NODE_PARAMS changed = bumps.node(3);
  CHECK(cuGraphExecKernelNodeSetParams(made, second, &changed));
  bumps.run(made, 2);
  copy = copy_of(bumps.aside(), bumps.aside() + 64, 32);
  CHECK(cuGraphExecMemcpyNodeSetParams(made, copied, &copy, bumps.context()));
  fill = fill_of(bumps.aside(), 8);
  CHECK(cuGraphExecMemsetNodeSetParams(made, filled, &fill, bumps.context()));
  CHECK(cuGraphNodeSetEnabled(made, first, 0));
  CHECK(cuMemsetD8(bumps.aside(), 0, 64));
  CHECK(cuMemsetD8(bumps.aside() + 64, 1, 64));
  bumps.run(made, 1);
  must_be_copied(bumps.aside(), 8, 32);
  CHECK(cuGraphNodeSetEnabled(made, first, 1));

  changed = bumps.node(4);
  CHECK(cuGraphKernelNodeSetParams(first, &changed));
  bumps.run(made, 2);  // what is instantiated stays as it is
  CUgraphExecUpdateResultInfo result{};
  CHECK(cuGraphExecUpdate(made, graph, &result));
  bumps.run(made, 2);
  CHECK(cuGraphDestroyNode(filled));
  bumps.run(graph, 2);
  CHECK(cuGraphExecDestroy(made));
  CHECK(cuGraphDestroy(graph));
}

void clones_and_children(Bumps& bumps) {
  CUgraph graph = new_graph(), clone = nullptr, outer = new_graph(), inner = nullptr;
  CUgraphNode node = bumps.add(graph, 1), cloned = nullptr, child = nullptr;
  CHECK(cuGraphClone(&clone, graph));
  CHECK(cuGraphNodeFindInClone(&cloned, node, clone));
  CUDA_KERNEL_NODE_PARAMS changed = bumps.node(2);
  CHECK(cuGraphKernelNodeSetParams(cloned, &changed));
  bumps.run(graph, 1);
  bumps.run(clone, 1);

  bumps.add(outer, 3);
  CHECK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
  bumps.run(outer, 2);
  CUgraphExec made = instantiated(outer);
  CHECK(cuGraphExecChildGraphNodeSetParams(made, child, clone));
  bumps.run(made, 2);
  CHECK(cuGraphChildGraphNodeGetGraph(child, &inner));
  std::size_t count = 1;
  CUgraphNode within = nullptr;
  CHECK(cuGraphGetNodes(inner, &within, &count));
  bumps.add(inner, 5, &within);
  bumps.run(outer, 3);
  CHECK(cuGraphExecDestroy(made));
  for (CUgraph each : {graph, clone, outer}) CHECK(cuGraphDestroy(each));
}

// As JAX makes them.
void by_one_call(Bumps& bumps) {
  CUgraph graph = new_graph();
  CUDA_KERNEL_NODE_PARAMS given = bumps.node(6);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = given.func;
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = LANES;
  params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.sharedMemBytes = given.sharedMemBytes;
  params.kernel.kernelParams = given.kernelParams;
  CUgraphNode node = nullptr, condition = nullptr;
  CHECK(add_node(&node, graph, nullptr, &params));
  CUgraphExec made = instantiated(graph);
  bumps.run(made, 1);
  params.kernel.sharedMemBytes = 7;
  CHECK(cuGraphExecNodeSetParams(made, node, &params));
  bumps.run(made, 1);
  CHECK(cuGraphExecDestroy(made));

  CUgraphConditionalHandle handle{};
  CHECK(cuGraphConditionalHandleCreate(&handle, graph, bumps.context(), 1,
                                       CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams conditional{};
  conditional.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  conditional.conditional.handle = handle;
  conditional.conditional.type = CU_GRAPH_COND_TYPE_IF;
  conditional.conditional.size = 1;
  conditional.conditional.ctx = bumps.context();
  CHECK(add_node(&condition, graph, &node, &conditional));
  bumps.add(conditional.conditional.phGraph_out[0], 8);
  bumps.run(graph, 2);
  CHECK(cuGraphDestroy(graph));
}

void captured(Bumps& bumps) {
  CUgraph graph = nullptr, outer = nullptr;
  CHECK(cuStreamBeginCapture(bumps.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  bumps.launch_forked();
  CHECK(cuStreamEndCapture(bumps.stream(), &graph));
  CUgraphExec made = instantiated(graph);
  bumps.run(made, 2);

  // Driver 580 refuses to capture a launch of a graph, and with it the capture.
  CHECK(cuStreamBeginCapture(bumps.stream(), CU_STREAM_CAPTURE_MODE_RELAXED));
  cuGraphLaunch(made, bumps.stream());
  if (cuStreamEndCapture(bumps.stream(), &outer) == CUDA_SUCCESS) {
    bumps.run(outer, 2);
    CHECK(cuGraphDestroy(outer));
  }

  CHECK(cuStreamBeginCaptureToGraph(bumps.stream(), graph, nullptr, nullptr, 0,
                                    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  bumps.launch(bumps.stream(), 10);
  CHECK(cuStreamEndCapture(bumps.stream(), &graph));
  bumps.run(graph, 3);
  CHECK(cuGraphExecDestroy(made));
  CHECK(cuGraphDestroy(graph));
}

}  // namespace

int main(int argc, char** argv) {
  long launches = option(argc, argv, "--launches", 3);
  if (launches < 1) {
    std::fprintf(stderr, "usage: graph_changes [--launches N]\n");
    return 2;
  }
  Device device;
  Bumps bumps(device, launches);
  node_by_node(bumps);
  clones_and_children(bumps);
  by_one_call(bumps);
  captured(bumps);
  return bumps.are_right() ? 0 : 1;
}
