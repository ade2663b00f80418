// Copies and fills touch no memory unless the GPU computes: they only refuse arguments that make no
// sense. Those that are given to a captured stream become nodes.
#include "behaviour.hpp"
#include "gpu.hpp"
#include "node_work.hpp"

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

uint64_t place(DevicePtr device) { return device; }
uint64_t place(const void* host) { return reinterpret_cast<uint64_t>(host); }

uint32_t memory_type(DevicePtr) { return kOnDevice; }
uint32_t memory_type(const void*) { return kOnHost; }

// As a node of a graph has it.
template <typename To, typename From>
Memcpy3D as_struct(To to, From from, uint64_t size) {
  Memcpy3D copy = {};
  copy.src_type = memory_type(from);
  copy.src_device = place(from);
  copy.src_host = reinterpret_cast<void*>(place(from));
  copy.dst_type = memory_type(to);
  copy.dst_device = place(to);
  copy.dst_host = reinterpret_cast<void*>(place(to));
  copy.width = size;
  copy.height = copy.depth = 1;
  return copy;
}

template <typename To, typename From>
auto copying(To to, From from, uint64_t size) {
  return [=] {
    return sized_work(Does::copy, size, copy_action(place(to), place(from), {.width = size}),
                      computes() ? given(as_struct(to, from, size)) : nullptr);
  };
}

// Without a stream, it is done on the default one, and waited for.
template <typename To, typename From>
Status copy(To to, From from, uint64_t size) {
  wait_for_gpu();
  return done(nullptr, check(to, from, size), copying(to, from, size));
}

template <typename To, typename From>
Status copy(Handle stream, To to, From from, uint64_t size) {
  return given(stream, check(to, from, size), copying(to, from, size));
}

// For an array, which has no memory.
template <typename To, typename From>
Status copy_array(Handle stream, To to, From from, uint64_t size) {
  return given(stream, check(to, from, size), [=] { return sized_work(Does::copy, size); });
}

struct Fill {
  uint32_t value;
  uint64_t element_size, width, height = 1, pitch = 0;
};

auto filling(DevicePtr to, const Fill& fill) {
  return [=] {
    return sized_work(
        Does::set, fill.width * fill.height * fill.element_size,
        fill_action(to, fill.value, fill.element_size, fill.width, fill.height, fill.pitch),
        computes() ? given(MemsetNodeParams{to, fill.pitch, fill.value,
                                            static_cast<uint32_t>(fill.element_size), fill.width,
                                            fill.height})
                   : nullptr);
  };
}

Status fill(DevicePtr to, const Fill& wanted) {
  return done(nullptr, check_fill(to, wanted.width), filling(to, wanted));
}

Status fill(Handle stream, DevicePtr to, const Fill& wanted) {
  return given(stream, check_fill(to, wanted.width * wanted.height), filling(to, wanted));
}

uint64_t size_of(const Memcpy2D& copy) { return copy.width * copy.height; }
uint64_t size_of(const Memcpy3D& copy) { return copy.width * copy.height * copy.depth; }

template <typename Copy>
auto copying_struct(const void* copy) {
  return [=] {
    if (!copy) return sized_work(Does::copy, 0);
    const Copy& wanted = *static_cast<const Copy*>(copy);
    return sized_work(Does::copy, size_of(wanted), action_of(wanted),
                      computes() ? given(wanted) : nullptr);
  };
}

template <typename Copy>
Status copy_struct(Handle stream, const void* copy) {
  return given(stream, check_struct<Copy>(copy), copying_struct<Copy>(copy));
}

template <typename Copy>
Status copy_struct(const void* copy) {
  wait_for_gpu();
  return done(nullptr, check_struct<Copy>(copy), copying_struct<Copy>(copy));
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
  return copy_array(stream, array, from, size);
}
Status cuMemcpyAtoHAsync(void* to, Handle array, uint64_t, uint64_t size, Handle stream) {
  return copy_array(stream, to, array, size);
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

Status cuMemsetD8(DevicePtr to, uint8_t value, uint64_t count) {
  return fill(to, {value, 1, count});
}
Status cuMemsetD16(DevicePtr to, uint16_t value, uint64_t count) {
  return fill(to, {value, 2, count});
}
Status cuMemsetD32(DevicePtr to, uint32_t value, uint64_t count) {
  return fill(to, {value, 4, count});
}
Status cuMemsetD8Async(DevicePtr to, uint8_t value, uint64_t count, Handle stream) {
  return fill(stream, to, {value, 1, count});
}
Status cuMemsetD16Async(DevicePtr to, uint16_t value, uint64_t count, Handle stream) {
  return fill(stream, to, {value, 2, count});
}
Status cuMemsetD32Async(DevicePtr to, uint32_t value, uint64_t count, Handle stream) {
  return fill(stream, to, {value, 4, count});
}
Status cuMemsetD2D8Async(DevicePtr to, uint64_t pitch, uint8_t value, uint64_t width,
                         uint64_t height, Handle stream) {
  return fill(stream, to, {value, 1, width, height, pitch});
}
Status cuMemsetD2D16Async(DevicePtr to, uint64_t pitch, uint16_t value, uint64_t width,
                          uint64_t height, Handle stream) {
  return fill(stream, to, {value, 2, width, height, pitch});
}
Status cuMemsetD2D32Async(DevicePtr to, uint64_t pitch, uint32_t value, uint64_t width,
                          uint64_t height, Handle stream) {
  return fill(stream, to, {value, 4, width, height, pitch});
}

}  // namespace fake
