// Copies and fills touch no memory: they only refuse arguments that make no sense. Those that are
// given to a captured stream become nodes.
#include "behaviour.hpp"
#include "gpu.hpp"

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

Status give(Handle stream, Status checked, Does does, uint64_t size) {
  return given(stream, checked, [&] { return sized_work(does, size); });
}

// Without a stream, it is done on the default one.
Status give(Status checked, Does does, uint64_t size) {
  return done(nullptr, checked, [&] { return sized_work(does, size); });
}

template <typename To, typename From>
Status copy(To to, From from, uint64_t size) {
  return give(check(to, from, size), Does::copy, size);
}

template <typename To, typename From>
Status copy(Handle stream, To to, From from, uint64_t size) {
  return give(stream, check(to, from, size), Does::copy, size);
}

Status fill(DevicePtr to, uint64_t count, uint64_t element_size) {
  return give(check_fill(to, count), Does::set, count * element_size);
}

Status fill(Handle stream, DevicePtr to, uint64_t count, uint64_t element_size) {
  return give(stream, check_fill(to, count), Does::set, count * element_size);
}

uint64_t size_of(const Memcpy2D& copy) { return copy.width * copy.height; }
uint64_t size_of(const Memcpy3D& copy) { return copy.width * copy.height * copy.depth; }

template <typename Copy>
Status copy_struct(Handle stream, const void* copy) {
  const uint64_t size = copy ? size_of(*static_cast<const Copy*>(copy)) : 0;
  return give(stream, check_struct<Copy>(copy), Does::copy, size);
}

template <typename Copy>
Status copy_struct(const void* copy) {
  const uint64_t size = copy ? size_of(*static_cast<const Copy*>(copy)) : 0;
  return give(check_struct<Copy>(copy), Does::copy, size);
}

}  // namespace

Status cuMemcpy(DevicePtr to, DevicePtr from, uint64_t size) { return copy(to, from, size); }
Status cuMemcpyAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle stream) {
  return copy(stream, to, from, size);
}
Status cuMemcpyHtoD(DevicePtr to, void* from, uint64_t size) { return copy(to, from, size); }
Status cuMemcpyHtoDAsync(DevicePtr to, void* from, uint64_t size, Handle stream) {
  return copy(stream, to, from, size);
}
Status cuMemcpyDtoH(void* to, DevicePtr from, uint64_t size) { return copy(to, from, size); }
Status cuMemcpyDtoHAsync(void* to, DevicePtr from, uint64_t size, Handle stream) {
  return copy(stream, to, from, size);
}
Status cuMemcpyDtoD(DevicePtr to, DevicePtr from, uint64_t size) { return copy(to, from, size); }
Status cuMemcpyDtoDAsync(DevicePtr to, DevicePtr from, uint64_t size, Handle stream) {
  return copy(stream, to, from, size);
}
Status cuMemcpyPeer(DevicePtr to, Handle, DevicePtr from, Handle, uint64_t size) {
  return copy(to, from, size);
}
Status cuMemcpyPeerAsync(DevicePtr to, Handle, DevicePtr from, Handle, uint64_t size,
                         Handle stream) {
  return copy(stream, to, from, size);
}

Status cuMemcpyHtoAAsync(Handle array, uint64_t, void* from, uint64_t size, Handle stream) {
  return copy(stream, array, from, size);
}
Status cuMemcpyAtoHAsync(void* to, Handle array, uint64_t, uint64_t size, Handle stream) {
  return copy(stream, to, array, size);
}
Status cuMemcpyBatchAsync(void* to, void* from, void* sizes, uint64_t, void*, void*, uint64_t,
                          Handle stream) {
  if (const auto forbidden = forbid_in_capture(stream)) return *forbidden;
  return to && from && sizes ? kSuccess : kInvalidValue;
}

Status cuMemcpy2D(void* copy) { return copy_struct<Memcpy2D>(copy); }
Status cuMemcpy2DUnaligned(void* copy) { return copy_struct<Memcpy2D>(copy); }
Status cuMemcpy2DAsync(void* copy, Handle stream) { return copy_struct<Memcpy2D>(stream, copy); }
Status cuMemcpy3D(void* copy) { return copy_struct<Memcpy3D>(copy); }
Status cuMemcpy3DAsync(void* copy, Handle stream) { return copy_struct<Memcpy3D>(stream, copy); }
Status cuMemcpy3DPeer(void* copy) { return copy_struct<Memcpy3D>(copy); }
Status cuMemcpy3DPeerAsync(void* copy, Handle stream) {
  return copy_struct<Memcpy3D>(stream, copy);
}

Status cuMemsetD8(DevicePtr to, uint8_t, uint64_t count) { return fill(to, count, 1); }
Status cuMemsetD16(DevicePtr to, uint16_t, uint64_t count) { return fill(to, count, 2); }
Status cuMemsetD32(DevicePtr to, uint32_t, uint64_t count) { return fill(to, count, 4); }
Status cuMemsetD8Async(DevicePtr to, uint8_t, uint64_t count, Handle stream) {
  return fill(stream, to, count, 1);
}
Status cuMemsetD16Async(DevicePtr to, uint16_t, uint64_t count, Handle stream) {
  return fill(stream, to, count, 2);
}
Status cuMemsetD32Async(DevicePtr to, uint32_t, uint64_t count, Handle stream) {
  return fill(stream, to, count, 4);
}
Status cuMemsetD2D8Async(DevicePtr to, uint64_t, uint8_t, uint64_t width, uint64_t height,
                         Handle stream) {
  return fill(stream, to, width * height, 1);
}
Status cuMemsetD2D16Async(DevicePtr to, uint64_t, uint16_t, uint64_t width, uint64_t height,
                          Handle stream) {
  return fill(stream, to, width * height, 2);
}
Status cuMemsetD2D32Async(DevicePtr to, uint64_t, uint32_t, uint64_t width, uint64_t height,
                          Handle stream) {
  return fill(stream, to, width * height, 4);
}

}  // namespace fake
