// Handles. Most are only numbers; a CUfunction or CUkernel is memory that holds its name, as in the
// real driver, because tracers read it from there.
#pragma once

#include <mutex>

#include "types.hpp"

namespace fake {

// Guards all state of the simulated driver. Leaked, so that it outlives every thread.
std::mutex& state_mutex();

Handle new_handle();                        // never handed out twice
DevicePtr new_device_range(uint64_t size);  // addresses that nothing else uses

// A freed function's memory goes to the next function made (last freed, first reused). Hold
// state_mutex.
Handle new_function(const char* name);
void free_function(Handle function);

const char* function_name(Handle function);  // null if there is no such live function

}  // namespace fake
