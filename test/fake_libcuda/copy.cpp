// Copies and fills touch no memory: they only refuse arguments that make no sense.
#include "behaviour.hpp"

namespace fake {
namespace {

template <typename To, typename From>
Status check(To to, From from, uint64_t size) {
  return size != 0 && (!to || !from) ? kInvalidValue : kSuccess;
}

Status check_fill(DevicePtr to, uint64_t count) {
  return count != 0 && !to ? kInvalidValue : kSuccess;
}

template <typename Copy>
Status check_struct(const void* copy) {
  if (!copy) return kInvalidValue;
  const Copy& wanted = *static_cast<const Copy*>(copy);
  const bool narrow_source = wanted.src_pitch != 0 && wanted.src_pitch < wanted.width;
  const bool narrow_target = wanted.dst_pitch != 0 && wanted.dst_pitch < wanted.width;
  return narrow_source || narrow_target ? kInvalidValue : kSuccess;
}

}  // namespace

Status cuMemcpy(DevicePtr to, DevicePtr from, uint64_t size) { return check(to, from, size); }
Status cuMemcpyAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle) {
  return check(to, from, size);
}
Status cuMemcpyHtoD(DevicePtr to, void* from, uint64_t size) { return check(to, from, size); }
Status cuMemcpyHtoDAsync(DevicePtr to, void* from, uint64_t size, Handle) {
  return check(to, from, size);
}
Status cuMemcpyDtoH(void* to, DevicePtr from, uint64_t size) { return check(to, from, size); }
Status cuMemcpyDtoHAsync(void* to, DevicePtr from, uint64_t size, Handle) {
  return check(to, from, size);
}
Status cuMemcpyDtoD(DevicePtr to, DevicePtr from, uint64_t size) { return check(to, from, size); }
Status cuMemcpyDtoDAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle) {
  return check(to, from, size);
}
Status cuMemcpyPeer(DevicePtr to, Handle, DevicePtr from, Handle, uint64_t size) {
  return check(to, from, size);
}
Status cuMemcpyPeerAsync(DevicePtr to, Handle, DevicePtr from, Handle, uint64_t size, Handle) {
  return check(to, from, size);
}

Status cuMemcpy2D(void* copy) { return check_struct<Memcpy2D>(copy); }
Status cuMemcpy2DUnaligned(void* copy) { return check_struct<Memcpy2D>(copy); }
Status cuMemcpy2DAsync(void* copy, Handle) { return check_struct<Memcpy2D>(copy); }
Status cuMemcpy3D(void* copy) { return check_struct<Memcpy3D>(copy); }
Status cuMemcpy3DAsync(void* copy, Handle) { return check_struct<Memcpy3D>(copy); }
Status cuMemcpy3DPeer(void* copy) { return check_struct<Memcpy3D>(copy); }
Status cuMemcpy3DPeerAsync(void* copy, Handle) { return check_struct<Memcpy3D>(copy); }

Status cuMemsetD8(DevicePtr to, uint8_t, uint64_t count) { return check_fill(to, count); }
Status cuMemsetD16(DevicePtr to, uint16_t, uint64_t count) { return check_fill(to, count); }
Status cuMemsetD32(DevicePtr to, uint32_t, uint64_t count) { return check_fill(to, count); }
Status cuMemsetD8Async(DevicePtr to, uint8_t, uint64_t count, Handle) {
  return check_fill(to, count);
}
Status cuMemsetD16Async(DevicePtr to, uint16_t, uint64_t count, Handle) {
  return check_fill(to, count);
}
Status cuMemsetD32Async(DevicePtr to, uint32_t, uint64_t count, Handle) {
  return check_fill(to, count);
}

}  // namespace fake
