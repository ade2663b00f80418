// Launches of kernels.
#include "behaviour.hpp"
#include "gpu.hpp"
#include "objects.hpp"

namespace fake {
namespace {

Status check(Handle function, const uint32_t grid[3], const uint32_t block[3]) {
  if (!function_name(function)) return kInvalidHandle;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] == 0 || block[i] == 0) return kInvalidValue;
  }
  return kSuccess;
}

Status launch(Handle function, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
              Handle stream) {
  const Status checked = check(function, grid, block);
  const auto work = [&] { return kernel_work(function, grid, block, shared); };
  return given(stream, checked, work);
}

}  // namespace

Status cuLaunchKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                      Handle stream, void*, void*) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, shared, stream);
}

Status cuLaunchCooperativeKernel(Handle function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                 uint32_t shared, Handle stream, void*) {
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return launch(function, grid, block, shared, stream);
}

Status cuLaunchKernelEx(void* config, Handle function, void*, void*) {
  if (!config) return kInvalidValue;
  const auto& wanted = *static_cast<const LaunchConfig*>(config);
  return launch(function, wanted.grid, wanted.block, wanted.shared, wanted.stream);
}

}  // namespace fake
