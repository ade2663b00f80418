// Launches of kernels.
#include <cstring>
#include <mutex>

#include "behaviour.hpp"
#include "compute/kernels.hpp"
#include "gpu.hpp"
#include "node_work.hpp"
#include "objects.hpp"

namespace fake {
namespace {

Status check(const Launch& wanted) {
  if (!function_name(wanted.function)) return kInvalidHandle;
  for (int i = 0; i < 3; ++i) {
    if (wanted.grid[i] == 0 || wanted.block[i] == 0) return kInvalidValue;
  }
  if (!computes()) return kSuccess;
  const std::lock_guard lock(state_mutex());
  return check_launch(wanted);
}

Status launch(const Launch& wanted, Handle stream, const Attributes& attributes = {}) {
  const auto work = [&] {
    Work work = kernel_work(wanted.function, wanted.grid, wanted.block, wanted.shared);
    if (!computes()) return work;
    const std::lock_guard lock(state_mutex());
    work.action = run_action(wanted);
    work.given = given(wanted);
    work.attributes = attributes;
    return work;
  };
  return given(stream, check(wanted), work);
}

}  // namespace

Status cuLaunchKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                      Handle stream, void* parameters, void* extra) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(
      {function, grid, block, shared, static_cast<void**>(parameters), static_cast<void**>(extra)},
      stream);
}

Status cuLaunchCooperativeKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                 uint32_t shared, Handle stream, void* parameters) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch({function, grid, block, shared, static_cast<void**>(parameters), nullptr}, stream);
}

Status cuLaunchKernelEx(void* config, Handle function, void* parameters, void* extra) {
  if (!config) return kInvalidValue;
  const auto& wanted = *static_cast<const LaunchConfig*>(config);
  const auto* attributes = static_cast<const LaunchAttribute*>(wanted.attributes);
  Attributes given;
  for (uint32_t i = 0; computes() && i < wanted.attribute_count; ++i)
    memcpy(given[attributes[i].id].data(), attributes[i].value, sizeof attributes[i].value);
  return launch(
      {function, wanted.grid, wanted.block, wanted.shared, static_cast<void**>(parameters),
       static_cast<void**>(extra), given.contains(kClusterDimension)},
      wanted.stream, given);
}

}  // namespace fake
