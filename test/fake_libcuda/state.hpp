// What the parts of the simulated driver need from each other. Hold state_mutex for all of it.
#pragma once

#include <optional>

#include "types.hpp"

namespace fake {

Handle current_context();                 // of this thread; null if none (needs no lock)
std::optional<int32_t> current_device();  // of that context; takes the lock
void free_memory_of(Handle context);      // device memory goes away with its context
void unload_modules_of(Handle context);

bool take_memory(uint64_t size);  // false if the device has no more
void give_memory(uint64_t size);
uint64_t memory_in_use();
bool is_pinned(uint64_t at, uint64_t size);  // memory of the host that the device may access

bool is_stream(Handle stream);

// What kernels need of the image that they are from.
DevicePtr variable_of(Handle function, const char* name);  // 0: it has none
uint32_t most_shared_of(Handle function);                  // by its attribute
const char* what_it_does(Handle function);                 // the kernel that it runs; null: none

}  // namespace fake
