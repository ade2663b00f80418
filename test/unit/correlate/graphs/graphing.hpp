// Makes calls about graphs, and shows what the trace says of launches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../correlating.hpp"

namespace samples {

constexpr std::uint64_t STREAM = 0x70, OTHER_STREAM = 0x71, EVENT = 0xe0;
constexpr std::uint64_t GEMM = 0x5500, RELU = 0x5600;
constexpr int FAILED = 1;

inline StructBytes kernel_node(std::uint64_t kernel, std::uint32_t grid) {
  StructBytes bytes(72);
  bytes.set(0, kernel);
  for (std::size_t at : {8, 12, 16, 20, 24, 28}) bytes.set<std::uint32_t>(at, at == 8 ? grid : 1);
  return bytes;
}

// A CUgraphNodeParams.
inline StructBytes node_params(std::uint32_t type) {
  StructBytes bytes(232);
  bytes.set(0, type);
  return bytes;
}

struct Graphing : Correlating {
  explicit Graphing(cudabpf::Correlator::Options options = {}, Head first = {})
      : Correlating(std::move(options)), head(first) {
    call_with("cuModuleGetFunction", {0, 0xa00, 0}, {}, {GEMM}, 0, "gemm");
    call_with("cuModuleGetFunction", {0, 0xa00, 0}, {}, {RELU}, 0, "relu");
  }

  const cudabpf::Call& call_with(std::string_view symbol, const std::vector<std::uint64_t>& words,
                                 std::span<const std::byte> structure = {},
                                 const std::vector<std::uint64_t>& outs = {}, int result = 0,
                                 const char* text = nullptr) {
    head.ts += 1000;
    feed(entry(head, symbol, words, structure, text));
    Head end = head;
    end.ts += 100;
    end.flags = 0;
    feed(returned(end, symbol, result, outs));
    return last();
  }

  const cudabpf::Call& launch(std::uint64_t kernel, std::uint64_t stream = STREAM,
                              std::uint64_t grid = 8, int result = 0) {
    return call_with("cuLaunchKernel", {kernel, grid, 1, 1, 1, 1, 1, 0, stream}, {}, {}, result);
  }
  void begin_capture(std::uint64_t stream = STREAM) {
    call_with("cuStreamBeginCapture_v2", {stream, 0});
  }
  void end_capture(std::uint64_t graph, std::uint64_t stream = STREAM, int result = 0) {
    call_with("cuStreamEndCapture", {stream, 0x1}, {},
              result ? std::vector<std::uint64_t>{} : std::vector{graph}, result);
  }
  void make(std::uint64_t graph) { call_with("cuGraphCreate", {0x1, 0}, {}, {graph}); }
  void add_kernel(std::uint64_t graph, std::uint64_t node, std::uint64_t kernel,
                  std::uint32_t grid = 8) {
    call_with("cuGraphAddKernelNode_v2", {0x1, graph, 0, 0, 0x2}, kernel_node(kernel, grid),
              {node});
  }
  void instantiate(std::uint64_t executable, std::uint64_t graph) {
    call_with("cuGraphInstantiateWithFlags", {0x1, graph, 0}, {}, {executable});
  }
  // What a launch of it does: "2 nodes: gemm 8 x2".
  std::string launched(std::uint64_t executable, std::uint64_t stream = STREAM) {
    return shown(call_with("cuGraphLaunch", {executable, stream}));
  }
  std::string launched_from(std::uint64_t executable, std::uint64_t graph) {
    instantiate(executable, graph);
    return launched(executable);
  }

  static std::string shown(const cudabpf::Call& call) {
    if (call.captured) return "captured";
    if (!call.graph) return std::string(to_string(call.graph_unknown));
    std::string text =
        std::to_string(call.graph->nodes) + "/" + std::to_string(call.graph->kernels);
    for (const auto& [work, count] : call.graph->operations) {
      text += work.conditional ? "? " : " ";
      text += work.kernel ? work.kernel->full : std::string(to_string(work.what));
      if (work.has_dims) text += ":" + std::to_string(work.grid.x);
      if (work.size) text += ":" + std::to_string(*work.size);
      text += "*" + std::to_string(count);
    }
    if (call.graph->more) text += " +" + std::to_string(call.graph->more);
    return text;
  }

  Head head;
};

}  // namespace samples
