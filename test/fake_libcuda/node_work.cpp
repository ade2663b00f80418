#include "node_work.hpp"

#include "compute/kernels.hpp"
#include "objects.hpp"

namespace fake {

namespace {

constexpr uint32_t kOnHost = 1, kArray = 3;  // CUmemorytype

uint64_t place(uint32_t type, const void* host, DevicePtr device) {
  return type == kOnHost ? reinterpret_cast<uint64_t>(host) : device;
}

}  // namespace

Action action_of(const Memcpy2D& copy) {
  if (copy.src_type == kArray || copy.dst_type == kArray) return {};
  const uint64_t from_pitch = copy.src_pitch ? copy.src_pitch : copy.width;
  const uint64_t to_pitch = copy.dst_pitch ? copy.dst_pitch : copy.width;
  return copy_action(
      place(copy.dst_type, copy.dst_host, copy.dst_device) + copy.dst_y * to_pitch + copy.dst_x,
      place(copy.src_type, copy.src_host, copy.src_device) + copy.src_y * from_pitch + copy.src_x,
      {.width = copy.width, .height = copy.height, .from_pitch = from_pitch, .to_pitch = to_pitch});
}

Action action_of(const Memcpy3D& copy) {
  if (copy.src_type == kArray || copy.dst_type == kArray) return {};
  const uint64_t from_pitch = copy.src_pitch ? copy.src_pitch : copy.width;
  const uint64_t to_pitch = copy.dst_pitch ? copy.dst_pitch : copy.width;
  const uint64_t from_slice = from_pitch * (copy.src_height ? copy.src_height : copy.height);
  const uint64_t to_slice = to_pitch * (copy.dst_height ? copy.dst_height : copy.height);
  return copy_action(place(copy.dst_type, copy.dst_host, copy.dst_device) + copy.dst_z * to_slice +
                         copy.dst_y * to_pitch + copy.dst_x,
                     place(copy.src_type, copy.src_host, copy.src_device) +
                         copy.src_z * from_slice + copy.src_y * from_pitch + copy.src_x,
                     {.width = copy.width,
                      .height = copy.height,
                      .depth = copy.depth,
                      .from_pitch = from_pitch,
                      .from_slice = from_slice,
                      .to_pitch = to_pitch,
                      .to_slice = to_slice});
}

Status read_kernel(const void* parameters, Work& work) {
  if (!parameters) return kInvalidValue;
  const auto& node = *static_cast<const KernelNodeParams*>(parameters);
  // The first version of the struct has no `kernel`.
  const Handle function = node.function ? node.function : node.kernel;
  if (!function_name(function)) return kInvalidHandle;
  work = kernel_work(function, node.grid, node.block, node.shared);
  // A node's attributes are set by calls of their own, which are not simulated.
  const Launch launch = {function,        node.grid,  node.block, node.shared,
                         node.parameters, node.extra, true};
  if (const Status bad = check_launch(launch)) return bad;
  work.action = run_action(launch);
  return kSuccess;
}

Status read_copy(const void* copy, Work& work) {
  if (!copy) return kInvalidValue;
  const auto& wanted = *static_cast<const Memcpy3D*>(copy);
  work = sized_work(Does::copy, wanted.width * wanted.height * wanted.depth, action_of(wanted));
  return work.size == 0 ? kInvalidValue : kSuccess;
}

Status read_fill(const void* fill, Work& work) {
  if (!fill) return kInvalidValue;
  const auto& wanted = *static_cast<const MemsetNodeParams*>(fill);
  work = sized_work(Does::set, wanted.element_size * wanted.width * wanted.height,
                    fill_action(wanted.to, wanted.value, wanted.element_size, wanted.width,
                                wanted.height, wanted.pitch));
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
