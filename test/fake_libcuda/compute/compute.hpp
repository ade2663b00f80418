// A GPU that computes, if FAKE_CUDA_COMPUTE asks for it: device memory holds what was written to
// it, copies and fills move bytes, and the kernels of kernels.hpp run on the calling thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "../types.hpp"

namespace fake {

bool computes();

// ----- memory. Hold state_mutex.

// Addresses with memory behind them, for a block of a program's.
std::optional<DevicePtr> backed_range(uint64_t size);
// The driver's own choice of addresses, where nothing is mapped: a multiple of 32 MiB.
std::optional<DevicePtr> hold_range(uint64_t size);
// The ones that a program wishes for. Like driver 580, it gives others without a word: what was
// mapped when cuInit was called counts as taken, and a start that is no multiple of 32 MiB is
// rounded up, unless it lies in a range that this process holds already.
std::optional<DevicePtr> hold_wanted(DevicePtr wanted, uint64_t size);
void let_go(DevicePtr at, uint64_t size);
void note_what_is_mapped();  // by cuInit

int create_physical(uint64_t size);  // a descriptor; -1: the system refuses
void destroy_physical(int memory);
bool map_physical(DevicePtr at, uint64_t size, int memory);
void unmap_physical(DevicePtr at, uint64_t size);

// The addresses are, or are no longer, a program's memory.
void memory_begins(DevicePtr at, uint64_t size);
void memory_ends(DevicePtr at);
bool is_memory(DevicePtr at, uint64_t size);

// ----- what the GPU does: called when its turn comes, without state_mutex. Empty unless it
// computes.

using Action = std::function<Status()>;

struct Rows {  // of a copy between pitched places; one row is a plain copy
  uint64_t width = 0, height = 1, depth = 1;
  uint64_t from_pitch = 0, from_slice = 0, to_pitch = 0, to_slice = 0;
};
// Places on the host are addresses, too.
Action copy_action(uint64_t to, uint64_t from, const Rows& rows);
Action fill_action(DevicePtr to, uint32_t value, uint64_t element_size, uint64_t width,
                   uint64_t height, uint64_t pitch);

// An error that stays, as after a fault: every later call returns it.
Status sticky_error();
void gpu_faults(Status status);
// Never returns if a kernel hangs.
void wait_for_gpu();
void gpu_hangs();

}  // namespace fake
