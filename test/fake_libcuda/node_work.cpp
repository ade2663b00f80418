#include "node_work.hpp"

#include <algorithm>

#include "compute/kernels.hpp"
#include "objects.hpp"

namespace fake {

namespace {

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

std::shared_ptr<const Given> given(const Memcpy3D& copy) {
  Given made;
  made.copy = copy;
  return std::make_shared<const Given>(std::move(made));
}

std::shared_ptr<const Given> given(const Memcpy2D& copy) {
  Memcpy3D wanted = {};
  wanted.src_x = copy.src_x;
  wanted.src_y = copy.src_y;
  wanted.src_type = copy.src_type;
  wanted.src_host = copy.src_host;
  wanted.src_device = copy.src_device;
  wanted.src_array = copy.src_array;
  wanted.src_pitch = copy.src_pitch;
  wanted.dst_x = copy.dst_x;
  wanted.dst_y = copy.dst_y;
  wanted.dst_type = copy.dst_type;
  wanted.dst_host = copy.dst_host;
  wanted.dst_device = copy.dst_device;
  wanted.dst_array = copy.dst_array;
  wanted.dst_pitch = copy.dst_pitch;
  wanted.width = copy.width;
  wanted.height = copy.height;
  wanted.depth = 1;
  return given(wanted);
}

std::shared_ptr<const Given> given(const MemsetNodeParams& set) {
  Given made;
  made.set = set;
  return std::make_shared<const Given>(std::move(made));
}

std::shared_ptr<const Given> given(const Launch& launch) {
  auto made = std::make_shared<Given>();
  made->kernel.function = launch.function;
  std::copy_n(launch.grid, 3, made->kernel.grid);
  std::copy_n(launch.block, 3, made->kernel.block);
  made->kernel.shared = launch.shared;
  made->parameters = parameters_of(launch, made->pointers);
  if (!made->pointers.empty()) made->kernel.parameters = made->pointers.data();
  return made;
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
  work.given = given(launch);
  return kSuccess;
}

Status read_copy(const void* copy, Work& work) {
  if (!copy) return kInvalidValue;
  const auto& wanted = *static_cast<const Memcpy3D*>(copy);
  work = sized_work(Does::copy, wanted.width * wanted.height * wanted.depth, action_of(wanted),
                    given(wanted));
  return work.size == 0 ? kInvalidValue : kSuccess;
}

Status read_fill(const void* fill, Work& work) {
  if (!fill) return kInvalidValue;
  const auto& wanted = *static_cast<const MemsetNodeParams*>(fill);
  work = sized_work(Does::set, wanted.element_size * wanted.width * wanted.height,
                    fill_action(wanted.to, wanted.value, wanted.element_size, wanted.width,
                                wanted.height, wanted.pitch),
                    given(wanted));
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
