// How the simulated driver reports to the simulated CUPTI what a GPU did.
#pragma once

#include <stdint.h>

namespace fake {

enum class GpuOp : uint32_t { kernel, copy, set };

struct GpuOperation {
  GpuOp op;
  const char* kernel;
  uint32_t grid[3], block[3], shared;
  uint64_t size;
  const void* stream;
};

// Exported as `fake_cupti_did`: the operations of one call, all of them in a graph or not.
using Did = void (*)(const GpuOperation* operations, uint32_t count, bool in_graph);

}  // namespace fake
