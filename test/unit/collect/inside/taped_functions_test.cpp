#include "collect/inside/taped_functions.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace cudabpf;

namespace {

abi::ci_taped taped(const char* symbol) {
  const Function* function = find_function(symbol);
  REQUIRE(function);
  return taped_of(*function);
}

}  // namespace

TEST_CASE("What a capture keeps of a launch: parameters in either form, and attributes") {
  for (const char* symbol : {"cuLaunchKernel", "cuLaunchKernel_ptsz"}) {
    auto launch = taped(symbol);
    CHECK(launch.keep == abi::CI_KEEP_LAUNCH);
    CHECK(launch.at == 0);
    CHECK(launch.lists_at == 9);
    CHECK(launch.extra_at == 10);
    CHECK(launch.to_at == CI_NO_WORD);
  }
  auto with_config = taped("cuLaunchKernelEx");
  CHECK(with_config.at == 1);
  CHECK(with_config.lists_at == 2);
  CHECK(with_config.extra_at == 3);
  CHECK(with_config.to_at == 0);
  auto cooperative = taped("cuLaunchCooperativeKernel");
  CHECK(cooperative.lists_at == 9);
  CHECK(cooperative.extra_at == CI_NO_WORD);
  CHECK(taped("cuGraphLaunch").keep == abi::CI_KEEP_GRAPH);
  CHECK(taped("cuLaunch").keep == abi::CI_KEEP_NOTHING);
}

TEST_CASE("What a capture keeps of code: the image and its options") {
  auto plain = taped("cuModuleLoadData");
  CHECK(plain.keep == abi::CI_KEEP_CODE);
  CHECK(plain.at == 1);
  CHECK(plain.size_at == CI_NO_WORD);
  auto with_options = taped("cuModuleLoadDataEx");
  CHECK(with_options.size_at == 2);
  CHECK(with_options.lists_at == 3);
  auto library = taped("cuLibraryLoadData");
  CHECK(library.at == 1);
  CHECK(library.size_at == 4);
  CHECK(library.lists_at == 2);
  CHECK(taped("cuModuleLoad").keep == abi::CI_KEEP_CODE_FILE);
  CHECK(taped("cuModuleLoad").at == 1);
  CHECK(taped("cuLibraryLoadFromFile").size_at == 4);
}

TEST_CASE("What a capture keeps of copies, and when their bytes are there") {
  auto from_host = taped("cuMemcpyHtoDAsync_v2");
  CHECK(from_host.keep == abi::CI_KEEP_FROM_HOST);
  CHECK(from_host.at == 1);
  CHECK(from_host.size_at == 2);
  auto at_once = taped("cuMemcpyDtoH_v2");
  CHECK(at_once.keep == abi::CI_KEEP_TO_HOST);
  CHECK(at_once.at == 0);
  CHECK(at_once.stream_at == CI_NO_WORD);
  CHECK(taped("cuMemcpyDtoHAsync_v2").stream_at == 3);
  auto either = taped("cuMemcpyAsync");
  CHECK(either.keep == abi::CI_KEEP_EITHER);
  CHECK(either.at == 1);
  CHECK(either.to_at == 0);
  CHECK(taped("cuMemcpyDtoD_v2").keep == abi::CI_KEEP_NOTHING);
  CHECK(taped("cuMemcpyHtoD").keep == abi::CI_KEEP_NOTHING);
  auto plane = taped("cuMemcpy2DAsync_v2");
  CHECK(plane.keep == abi::CI_KEEP_COPY_2D);
  CHECK(plane.at == 0);
  CHECK(plane.stream_at == 1);
  CHECK(taped("cuMemcpy2DUnaligned_v2").stream_at == CI_NO_WORD);
  CHECK(taped("cuMemcpy3DAsync_v2").keep == abi::CI_KEEP_COPY_3D);
  for (const char* otherwise : {"cuMemcpy2D", "cuMemcpy3DPeer", "cuMemcpy3DBatchAsync_v2"})
    CHECK(taped(otherwise).keep == abi::CI_KEEP_NOTHING);
  CHECK(taped("cuStreamSynchronize").stream_at == 0);
  CHECK(taped("cuCtxSynchronize").keep == abi::CI_KEEP_WAIT);
  CHECK(taped("cuCtxSynchronize").stream_at == CI_NO_WORD);
  CHECK(taped("cuEventSynchronize").keep == abi::CI_KEEP_NOTHING);
  for (const char* waits : {"cuEventSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH_v2"})
    CHECK(taped(waits).waits);
  CHECK_FALSE(taped("cuMemcpyDtoHAsync_v2").waits);
  CHECK_FALSE(taped("cuLaunchKernel").waits);
}

TEST_CASE("What a capture keeps of graphs: what their nodes are given, before and after") {
  for (const char* symbol :
       {"cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
        "cuGraphInstantiateWithParams", "cuGraphExecUpdate", "cuGraphExecUpdate_v2"}) {
    CHECK(taped(symbol).keep == abi::CI_KEEP_NODES);
    CHECK(taped(symbol).at == 1);
  }
  CHECK(taped("cuGraphExecChildGraphNodeSetParams").keep == abi::CI_KEEP_NODES);
  CHECK(taped("cuGraphExecChildGraphNodeSetParams").at == 2);
  auto first = taped("cuGraphExecKernelNodeSetParams");
  CHECK(first.keep == abi::CI_KEEP_KERNEL_NODE_V1);
  CHECK(first.at == 2);
  CHECK(taped("cuGraphExecKernelNodeSetParams_v2").keep == abi::CI_KEEP_KERNEL_NODE);
  CHECK(taped("cuGraphExecMemcpyNodeSetParams").keep == abi::CI_KEEP_COPY_NODE);
  CHECK(taped("cuGraphExecMemsetNodeSetParams").keep == abi::CI_KEEP_SET_NODE);
  CHECK(taped("cuGraphExecNodeSetParams").keep == abi::CI_KEEP_ANY_NODE);
  // A graph that is not executable may change as it likes.
  CHECK(taped("cuGraphKernelNodeSetParams_v2").keep == abi::CI_KEEP_NOTHING);
  CHECK(taped("cuGraphNodeSetEnabled").keep == abi::CI_KEEP_NOTHING);
}
