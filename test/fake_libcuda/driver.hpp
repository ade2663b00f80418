// What the functions of the CUDA API request from the kernel driver: the ioctls that the real
// library makes in the same call, as far as a tracer can see. Without FAKE_CUDA_DRIVER, none of
// this does anything. Launches, copies and waits request nothing. Do not hold state_mutex: an ioctl
// may take long.
#pragma once

#include "types.hpp"

namespace fake {

Status driver_init();

Status driver_create_context(Handle context, int32_t device);
void driver_destroy_context(Handle context);

// Memory that is on the GPU, or that the GPU can reach. Small sizes come from what the library has.
Status driver_allocate(DevicePtr pointer, uint64_t size);
void driver_free(DevicePtr pointer);
Status driver_pin(void* pointer, uint64_t size);
void driver_unpin(void* pointer);
Status driver_load(Handle module);  // memory for its code
void driver_unload(Handle module);

Status driver_create_stream(Handle stream);
void driver_destroy_stream(Handle stream);

void driver_forget();  // after fork: the child has no devices open and no contexts

}  // namespace fake
