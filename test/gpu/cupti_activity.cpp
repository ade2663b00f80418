// What tools built on CUPTI do to a program: every driver and runtime call, kernel and copy becomes
// a record, which is counted and thrown away. libcuda itself loads this if CUDA_INJECTION64_PATH
// names it. When the program ends, it prints one line on stderr: how many records there were.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

constexpr std::size_t BUFFER = 8 << 20, ALIGNMENT = 8;
std::atomic<unsigned long> records, dropped;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* at_most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ALIGNMENT, BUFFER));
  *size = *buffer ? BUFFER : 0;
  *at_most = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t filled) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) records++;
  std::size_t lost = 0;
  cuptiActivityGetNumDroppedRecords(context, stream, &lost);
  dropped += lost;
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(1);
  std::fprintf(stderr, "cupti_activity: records=%lu dropped=%lu\n", records.load(), dropped.load());
}

}  // namespace

extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME}) {
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) {
      std::fprintf(stderr, "cupti_activity: kind %d cannot be enabled\n", kind);
      std::abort();
    }
  }
  std::atexit(finish);
  return 1;
}
