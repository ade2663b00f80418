#include "gpu.hpp"

#include <dlfcn.h>

#include "../fake_cupti/gpu_operation.h"

namespace fake {

std::atomic<bool> gpu_is_watched{false};

namespace {

Did did = nullptr;

// Copies and fills of no bytes are not done, and what else a node does is not the GPU's.
bool is_gpu_operation(const Work& work) {
  if (work.does == Does::kernel) return true;
  return (work.does == Does::copy || work.does == Does::set) && work.size != 0;
}

GpuOperation operation_of(const Work& work, Handle stream) {
  GpuOperation out{};
  out.op = work.does == Does::kernel ? GpuOp::kernel
           : work.does == Does::copy ? GpuOp::copy
                                     : GpuOp::set;
  if (work.does == Does::kernel) out.kernel = work.kernel.c_str();
  for (int i = 0; i < 3; ++i) {
    out.grid[i] = work.grid[i];
    out.block[i] = work.block[i];
  }
  out.shared = work.shared;
  out.size = work.size;
  out.stream = stream;
  return out;
}

}  // namespace

void look_for_cupti() {
  void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  if (cupti) did = reinterpret_cast<Did>(dlsym(cupti, "fake_cupti_did"));
  gpu_is_watched.store(did != nullptr);
}

void gpu_does(const Work& work, Handle stream) {
  if (!is_gpu_operation(work)) return;
  const GpuOperation one = operation_of(work, stream);
  did(&one, 1, false);
}

Status gpu_computes(const Work& work) {
  if (!work.action) return kSuccess;
  const Status status = work.action();
  if (status != kIllegalAddress) return status;
  gpu_faults(status);
  return kSuccess;
}

void gpu_does_graph(const std::vector<const Work*>& operations, Handle stream) {
  std::vector<GpuOperation> all;
  for (const Work* work : operations)
    if (is_gpu_operation(*work)) all.push_back(operation_of(*work, stream));
  if (!all.empty()) did(all.data(), static_cast<uint32_t>(all.size()), true);
}

}  // namespace fake
