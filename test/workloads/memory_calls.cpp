// The statements of fake_calls that allocate, free and fill memory.
#include "calls.hpp"

namespace workload {
namespace {

// Pinned memory on device 0: CUmemAllocationProp, and CUmemPoolProps, which begins the same way.
struct Properties {
  uint32_t type = 1, handle_types = 0, location_type = 1, location_id = 0;
  uint64_t rest[9] = {};
};

Status set_access(D d, A a) {
  const uint32_t read_write_on_device_0[3] = {1, 0, 3};
  return d.cuMemSetAccess(a.word(1), a.word(2), read_write_on_device_0, 1);
}

}  // namespace

const std::map<std::string, Make>& memory_calls() {
  static const Properties properties;
  static const std::map<std::string, Make> calls = {
      {"malloc", [](D d, A a) { return d.cuMemAlloc(a.out(1), a.word(2)); }},
      {"malloc-managed", [](D d, A a) { return d.cuMemAllocManaged(a.out(1), a.word(2), 1); }},
      {"malloc-pitch",
       [](D d, A a) {
         uint64_t pitch = 0;
         return d.cuMemAllocPitch(a.out(1), &pitch, a.word(2), a.word(3), 4);
       }},
      {"malloc-async",
       [](D d, A a) { return d.cuMemAllocAsync(a.out(1), a.word(2), a.stream(3)); }},
      {"malloc-pool",
       [](D d, A a) {
         return d.cuMemAllocFromPoolAsync(a.out(1), a.word(2), a.handle(3), a.stream(4));
       }},
      {"malloc-host", [](D d, A a) { return d.cuMemAllocHost(a.out_handle(1), a.word(2)); }},
      {"host-alloc", [](D d, A a) { return d.cuMemHostAlloc(a.out_handle(1), a.word(2), 0); }},
      {"free", [](D d, A a) { return d.cuMemFree(a.word(1)); }},
      {"free-async", [](D d, A a) { return d.cuMemFreeAsync(a.word(1), a.stream(2)); }},
      {"free-host", [](D d, A a) { return d.cuMemFreeHost(a.handle(1)); }},
      {"register", [](D d, A a) { return d.cuMemHostRegister(a.handle(1), a.word(2), 0); }},
      {"unregister", [](D d, A a) { return d.cuMemHostUnregister(a.handle(1)); }},
      {"memory-info",
       [](D d, A) {
         uint64_t free = 0, total = 0;
         return d.cuMemGetInfo(&free, &total);
       }},
      {"pool", [](D d, A a) { return d.cuMemPoolCreate(a.out_handle(1), &properties); }},
      {"trim-pool", [](D d, A a) { return d.cuMemPoolTrimTo(a.handle(1), a.word_or(2, 0)); }},
      {"destroy-pool", [](D d, A a) { return d.cuMemPoolDestroy(a.handle(1)); }},
      {"reserve", [](D d, A a) { return d.cuMemAddressReserve(a.out(1), a.word(2), 0, 0, 0); }},
      {"unreserve", [](D d, A a) { return d.cuMemAddressFree(a.word(1), a.word(2)); }},
      {"create",
       [](D d, A a) { return d.cuMemCreate(a.out_handle(1), a.word(2), &properties, 0); }},
      {"release-memory", [](D d, A a) { return d.cuMemRelease(a.handle(1)); }},
      {"map", [](D d, A a) { return d.cuMemMap(a.word(1), a.word(2), 0, a.handle(3), 0); }},
      {"unmap", [](D d, A a) { return d.cuMemUnmap(a.word(1), a.word(2)); }},
      {"access", set_access},
      {"prefetch",  // to device 0: a CUmemLocation is its type and its id in one word
       [](D d, A a) { return d.cuMemPrefetchAsync(a.word(1), a.word(2), 1, 0, a.stream(3)); }},
      {"advise", [](D d, A a) { return d.cuMemAdvise(a.word(1), a.word(2), 1, 1); }},
      {"set8", [](D d, A a) { return d.cuMemsetD8(a.word(1), a.word(2), a.word(3)); }},
      {"set16", [](D d, A a) { return d.cuMemsetD16(a.word(1), a.word(2), a.word(3)); }},
      {"set32", [](D d, A a) { return d.cuMemsetD32(a.word(1), a.word(2), a.word(3)); }},
      {"set8-async",
       [](D d, A a) { return d.cuMemsetD8Async(a.word(1), a.word(2), a.word(3), a.stream(4)); }},
      {"set16-async",
       [](D d, A a) { return d.cuMemsetD16Async(a.word(1), a.word(2), a.word(3), a.stream(4)); }},
      {"set32-async",
       [](D d, A a) { return d.cuMemsetD32Async(a.word(1), a.word(2), a.word(3), a.stream(4)); }},
      {"set2d8",
       [](D d, A a) {
         return d.cuMemsetD2D8(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5));
       }},
      {"set2d16",
       [](D d, A a) {
         return d.cuMemsetD2D16(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5));
       }},
      {"set2d32",
       [](D d, A a) {
         return d.cuMemsetD2D32(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5));
       }},
      {"set2d8-async",
       [](D d, A a) {
         return d.cuMemsetD2D8Async(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5),
                                    a.stream(6));
       }},
      {"set2d16-async",
       [](D d, A a) {
         return d.cuMemsetD2D16Async(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5),
                                     a.stream(6));
       }},
      {"set2d32-async",
       [](D d, A a) {
         return d.cuMemsetD2D32Async(a.word(1), a.word(2), a.word(3), a.word(4), a.word(5),
                                     a.stream(6));
       }},
  };
  return calls;
}

}  // namespace workload
