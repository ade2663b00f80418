// What tools built on CUPTI do to a program: every driver and runtime call, kernel and copy becomes
// a record, which is counted and thrown away. libcuda itself loads this if CUDA_INJECTION64_PATH
// names it. When the program ends, it prints one line on stderr: how many records there were.
// With CUPTI_ACTIVITY_KERNELS in the environment there are no records but of kernels, copies and
// fills; with CUPTI_ACTIVITY_FILE, it writes these there instead of throwing them away: what, when
// the issuing call began (with records of calls), stream, beginning, end, shape or bytes, name.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <mutex>

namespace {

constexpr std::size_t BUFFER = 8 << 20, ALIGNMENT = 8;
std::atomic<unsigned long> records, dropped;
std::FILE* file;
std::mutex writing;
std::map<std::uint32_t, unsigned long> call_begins;  // by the call's number

void write(const CUpti_Activity& record) {
  const std::lock_guard lock(writing);
  if (record.kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    const auto& call = reinterpret_cast<const CUpti_ActivityAPI&>(record);
    call_begins[call.correlationId] = call.start;
  } else if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel9&>(record);
    std::fprintf(file, "kernel\t%u\t%u\t%lu\t%lu\t%d,%d,%d\t%s\n", kernel.correlationId,
                 kernel.streamId, kernel.start, kernel.end, kernel.gridX, kernel.gridY,
                 kernel.gridZ, kernel.name);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy5&>(record);
    std::fprintf(file, "copy\t%u\t%u\t%lu\t%lu\t%lu\t\n", copy.correlationId, copy.streamId,
                 copy.start, copy.end, copy.bytes);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
    std::fprintf(file, "set\t%u\t%u\t%lu\t%lu\t%lu\t\n", fill.correlationId, fill.streamId,
                 fill.start, fill.end, fill.bytes);
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* at_most) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ALIGNMENT, BUFFER));
  *size = *buffer ? BUFFER : 0;
  *at_most = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t filled) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) {
    records++;
    if (file) write(*record);
  }
  std::size_t lost = 0;
  cuptiActivityGetNumDroppedRecords(context, stream, &lost);
  dropped += lost;
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(1);
  if (file) {
    for (const auto& [number, began] : call_begins)
      std::fprintf(file, "call\t%u\t%lu\n", number, began);
    std::fclose(file);
  }
  std::fprintf(stderr, "cupti_activity: records=%lu dropped=%lu\n", records.load(), dropped.load());
}

}  // namespace

extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (const char* path = std::getenv("CUPTI_ACTIVITY_FILE")) file = std::fopen(path, "w");
  const bool no_calls = std::getenv("CUPTI_ACTIVITY_KERNELS");
  for (auto kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME}) {
    if (no_calls && (kind == CUPTI_ACTIVITY_KIND_DRIVER || kind == CUPTI_ACTIVITY_KIND_RUNTIME))
      continue;
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS) {
      if (file) {
        for (const auto& [number, began] : call_begins)
          std::fprintf(file, "call\t%u\t%lu\n", number, began);
        std::fclose(file);
      }
      std::fprintf(stderr, "cupti_activity: kind %d cannot be enabled\n", kind);
      std::abort();
    }
  }
  std::atexit(finish);
  return 1;
}
