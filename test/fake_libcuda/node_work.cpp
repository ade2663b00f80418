#include "node_work.hpp"

#include "objects.hpp"

namespace fake {

Status read_kernel(const void* parameters, Work& work) {
  if (!parameters) return kInvalidValue;
  const auto& node = *static_cast<const KernelNodeParams*>(parameters);
  // The first version of the struct has no `kernel`.
  const Handle function = node.function ? node.function : node.kernel;
  if (!function_name(function)) return kInvalidHandle;
  work = kernel_work(function, node.grid, node.block, node.shared);
  return kSuccess;
}

Status read_copy(const void* copy, Work& work) {
  if (!copy) return kInvalidValue;
  const auto& wanted = *static_cast<const Memcpy3D*>(copy);
  work = sized_work(Does::copy, wanted.width * wanted.height * wanted.depth);
  return work.size == 0 ? kInvalidValue : kSuccess;
}

Status read_fill(const void* fill, Work& work) {
  if (!fill) return kInvalidValue;
  const auto& wanted = *static_cast<const MemsetNodeParams*>(fill);
  work = sized_work(Does::set, wanted.element_size * wanted.width * wanted.height);
  return work.size == 0 ? kInvalidValue : kSuccess;
}

Status read_host(const void* parameters, Work& work) {
  if (!parameters) return kInvalidValue;
  work = {.does = Does::host, .host = *static_cast<const HostNodeParams*>(parameters)};
  return work.host.function ? kSuccess : kInvalidValue;
}

Status read_node(const void* parameters, Work& work) {
  if (!parameters) return kInvalidValue;
  const auto& node = *static_cast<const GraphNodeParams*>(parameters);
  switch (node.type) {
    case kKernelNode:
      return read_kernel(&node.kernel, work);
    case kMemcpyNode:
      return read_copy(&node.copy.copy, work);
    case kMemsetNode:
      return read_fill(&node.set, work);
    case kHostNode:
      return read_host(&node.host, work);
    case kChildGraphNode:
      work = {.does = Does::graph};
      return kSuccess;
    case kAllocNode:
      work = sized_work(Does::alloc, node.alloc.size);
      return node.alloc.size ? kSuccess : kInvalidValue;
    case kFreeNode:
      work = {.does = Does::free};
      return kSuccess;
    case kConditionalNode:
      work = {.does = Does::conditional};
      return node.conditional.count ? kSuccess : kInvalidValue;
    default:
      work = {.does = Does::other};
      return kSuccess;
  }
}

}  // namespace fake
