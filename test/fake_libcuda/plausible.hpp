// What a function without its own behaviour writes through its output pointers.
#pragma once

#include "objects.hpp"
#include "types.hpp"

namespace fake {

inline void write_plausible(uint32_t* out) {
  if (out) *out = 1;
}
inline void write_plausible(int32_t* out) {
  if (out) *out = 1;
}
inline void write_plausible(uint64_t* out) {
  if (out) *out = 1;
}
inline void write_plausible(float* out) {
  if (out) *out = 0.5F;
}

inline void write_plausible_address(DevicePtr* out) {
  if (out) *out = new_device_range(512);
}

inline void write_plausible(void** out) {
  if (out) *out = new_handle();
}

}  // namespace fake
