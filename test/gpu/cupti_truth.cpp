// Records a process's driver calls as NVIDIA's own callback API sees them, to compare cudabpf's
// record with. libcuda loads this library into every process that has CUDA_INJECTION64_PATH set,
// while it initialises: earlier calls are not seen. Each process writes one line per call, as the
// call begins, to $CUPTI_TRUTH.PID. With CUPTI_TRUTH_GRAPHS in the environment, a launch of a graph
// has a number, and what the GPU then ran for it has lines of its own, written at exit.
#include <cuda.h>
#include <cupti.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

namespace {

int truth = -1;
bool graphs = false;
std::atomic<unsigned long> kernels_by_themselves;

// One line, put together on the stack and written at once: threads' lines do not mix, and nothing
// is lost when the process is killed.
class Line {
 public:
  Line() { add("{"); }
  Line(const CUpti_CallbackData& call) : Line() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    add("\"ts\":%lld,\"tid\":%ld,\"name\":\"%s\"", now.tv_sec * 1000000000LL + now.tv_nsec,
        syscall(SYS_gettid), call.functionName);
  }
  ~Line() {
    add("}\n");
    if (write(truth, text_, length_) != static_cast<ssize_t>(length_)) std::abort();
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int more = std::vsnprintf(text_ + length_, sizeof text_ - length_, format, arguments);
    va_end(arguments);
    length_ += static_cast<std::size_t>(more);
    if (length_ >= sizeof text_) std::abort();  // no real name is this long
  }
  void stream(CUstream stream) {
    add(",\"stream\":\"0x%" PRIxPTR "\"", reinterpret_cast<std::uintptr_t>(stream));
  }
  void device_of(CUcontext context) {
    std::uint32_t device = 0;
    if (context && cuptiGetDeviceId(context, &device) == CUPTI_SUCCESS)
      add(",\"device\":%u", device);
  }
  void size(std::size_t bytes) { add(",\"size\":%zu", bytes); }
  void transfer(const char* direction, std::size_t bytes) {
    add(",\"op\":\"%s\",\"size\":%zu", direction, bytes);
  }
  template <typename Shape>
  void launch(const char* kernel, const Shape& shape, CUstream stream_of) {
    add(",\"kernel\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u",
        kernel ? kernel : "", shape.gridDimX, shape.gridDimY, shape.gridDimZ, shape.blockDimX,
        shape.blockDimY, shape.blockDimZ, shape.sharedMemBytes);
    stream(stream_of);
  }

 private:
  char text_[16384];
  std::size_t length_ = 0;
};

char letter(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return 'H';
    case CU_MEMORYTYPE_DEVICE:
      return 'D';
    case CU_MEMORYTYPE_ARRAY:
      return 'A';
    default:
      return 'U';  // unified
  }
}

// What the GPU did for a launch of a graph: nodes have numbers, other work has none.
void write_work(const CUpti_ActivityKernel9& kernel) {
  kernels_by_themselves += !kernel.graphNodeId;
  if (!kernel.graphNodeId) return;
  Line line;
  line.add(
      "\"launched\":%u,\"kernel\":\"%s\",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"shared\":%d",
      kernel.correlationId, kernel.name, kernel.gridX, kernel.gridY, kernel.gridZ, kernel.blockX,
      kernel.blockY, kernel.blockZ, kernel.dynamicSharedMemory);
}
template <typename Moved>
void write_work(const Moved& moved, const char* what) {
  if (!moved.graphNodeId) return;
  Line line;
  line.add("\"launched\":%u,\"work\":\"%s\",\"bytes\":%llu", moved.correlationId, what,
           static_cast<unsigned long long>(moved.bytes));
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* at_most) {
  constexpr std::size_t BUFFER = 8 << 20, ALIGNMENT = 8;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ALIGNMENT, BUFFER));
  *size = *buffer ? BUFFER : 0;
  *at_most = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t, std::size_t filled) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      write_work(*reinterpret_cast<const CUpti_ActivityKernel9*>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      write_work(*reinterpret_cast<const CUpti_ActivityMemcpy5*>(record), "copy");
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      write_work(*reinterpret_cast<const CUpti_ActivityMemset4*>(record), "set");
  }
  std::size_t lost = 0;
  cuptiActivityGetNumDroppedRecords(context, stream, &lost);
  if (lost) std::abort();
  std::free(buffer);
}

template <typename Copy>
void add_copy(Line& line, const Copy& copy, std::size_t depth) {
  char direction[] = {letter(copy.srcMemoryType), 't', 'o', letter(copy.dstMemoryType), 0};
  line.transfer(direction, copy.WidthInBytes * copy.Height * depth);
}

// The arguments of a launch, a copy or an allocation.
void add_arguments(Line& line, CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const void* given = call.functionParams;
#define CALL(function, ...)                                        \
  case CUPTI_DRIVER_TRACE_CBID_##function: {                       \
    const auto& p = *static_cast<const function##_params*>(given); \
    __VA_ARGS__;                                                   \
    break;                                                         \
  }
#define TWICE(function, suffix, ...) \
  CALL(function, __VA_ARGS__) CALL(function##_##suffix, __VA_ARGS__)
  switch (id) {
    TWICE(cuLaunchKernel, ptsz, line.launch(call.symbolName, p, p.hStream))
    TWICE(cuLaunchCooperativeKernel, ptsz, line.launch(call.symbolName, p, p.hStream))
    TWICE(cuLaunchKernelEx, ptsz, line.launch(call.symbolName, *p.config, p.config->hStream))

    TWICE(cuMemcpyHtoD_v2, ptds, line.transfer("HtoD", p.ByteCount))
    TWICE(cuMemcpyDtoH_v2, ptds, line.transfer("DtoH", p.ByteCount))
    TWICE(cuMemcpyDtoD_v2, ptds, line.transfer("DtoD", p.ByteCount))
    TWICE(cuMemcpyHtoA_v2, ptds, line.transfer("HtoA", p.ByteCount))
    TWICE(cuMemcpyAtoH_v2, ptds, line.transfer("AtoH", p.ByteCount))
    TWICE(cuMemcpyDtoA_v2, ptds, line.transfer("DtoA", p.ByteCount))
    TWICE(cuMemcpyAtoD_v2, ptds, line.transfer("AtoD", p.ByteCount))
    TWICE(cuMemcpyAtoA_v2, ptds, line.transfer("AtoA", p.ByteCount))
    TWICE(cuMemcpyPeer, ptds, line.transfer("peer", p.ByteCount))
    TWICE(cuMemcpy, ptds, line.size(p.ByteCount))
    TWICE(cuMemcpyHtoDAsync_v2, ptsz, line.transfer("HtoD", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyDtoHAsync_v2, ptsz, line.transfer("DtoH", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyDtoDAsync_v2, ptsz, line.transfer("DtoD", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyHtoAAsync_v2, ptsz, line.transfer("HtoA", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyAtoHAsync_v2, ptsz, line.transfer("AtoH", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyPeerAsync, ptsz, line.transfer("peer", p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpyAsync, ptsz, line.size(p.ByteCount); line.stream(p.hStream))
    TWICE(cuMemcpy2D_v2, ptds, add_copy(line, *p.pCopy, 1))
    TWICE(cuMemcpy2DUnaligned_v2, ptds, add_copy(line, *p.pCopy, 1))
    TWICE(cuMemcpy3D_v2, ptds, add_copy(line, *p.pCopy, p.pCopy->Depth))
    TWICE(cuMemcpy2DAsync_v2, ptsz, add_copy(line, *p.pCopy, 1); line.stream(p.hStream))
    TWICE(cuMemcpy3DAsync_v2, ptsz, add_copy(line, *p.pCopy, p.pCopy->Depth);
          line.stream(p.hStream))

    TWICE(cuMemsetD8_v2, ptds, line.size(p.N))
    TWICE(cuMemsetD16_v2, ptds, line.size(p.N * 2))
    TWICE(cuMemsetD32_v2, ptds, line.size(p.N * 4))
    TWICE(cuMemsetD8Async, ptsz, line.size(p.N); line.stream(p.hStream))
    TWICE(cuMemsetD16Async, ptsz, line.size(p.N * 2); line.stream(p.hStream))
    TWICE(cuMemsetD32Async, ptsz, line.size(p.N * 4); line.stream(p.hStream))
    TWICE(cuMemsetD2D8_v2, ptds, line.size(p.Width * p.Height))
    TWICE(cuMemsetD2D32_v2, ptds, line.size(p.Width * 4 * p.Height))

    CALL(cuMemAlloc_v2, line.size(p.bytesize))
    CALL(cuMemAllocManaged, line.size(p.bytesize))
    CALL(cuMemAllocHost_v2, line.size(p.bytesize))
    CALL(cuMemHostAlloc, line.size(p.bytesize))
    CALL(cuMemHostRegister_v2, line.size(p.bytesize))
    CALL(cuMemCreate, line.size(p.size))
    CALL(cuMemAddressReserve, line.size(p.size))
    CALL(cuMemMap, line.size(p.size))
    CALL(cuMemUnmap, line.size(p.size))
    TWICE(cuMemAllocAsync, ptsz, line.size(p.bytesize); line.stream(p.hStream))
    TWICE(cuMemAllocFromPoolAsync, ptsz, line.size(p.bytesize); line.stream(p.hStream))
    default:
      break;
  }
#undef TWICE
#undef CALL
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite == CUPTI_API_ENTER) {
    Line line(call);
    line.device_of(call.context);
    if (graphs && (id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
                   id == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz))
      line.add(",\"launch\":%u", call.correlationId);
    add_arguments(line, id, call);
  } else if (auto result = *static_cast<const CUresult*>(call.functionReturnValue);
             result != CUDA_SUCCESS) {
    Line line(call);
    line.add(",\"failed\":%d", result);
  }
}

void must(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* why = nullptr;
  cuptiGetResultString(result, &why);
  std::fprintf(stderr, "cupti_truth: %s: %s\n", what, why ? why : "?");
  std::abort();
}

}  // namespace

// The name that libcuda calls.
extern "C" int InitializeInjection() {
  const char* prefix = std::getenv("CUPTI_TRUTH");
  if (!prefix) return 1;
  char path[4096];
  std::snprintf(path, sizeof path, "%s.%d", prefix, getpid());
  truth = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (truth < 0) {
    std::perror(path);
    std::abort();
  }
  static CUpti_SubscriberHandle subscriber;
  must(cuptiSubscribe(&subscriber, called, nullptr), "subscribing");
  must(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API),
       "enabling the driver's callbacks");
  graphs = std::getenv("CUPTI_TRUTH_GRAPHS");
  if (!graphs) return 1;
  must(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "giving buffers");
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                    CUPTI_ACTIVITY_KIND_MEMSET})
    must(cuptiActivityEnable(kind), "enabling activities");
  std::atexit([] {
    cuptiActivityFlushAll(1);
    Line().add("\"kernels_by_themselves\":%lu", kernels_by_themselves.load());
  });
  return 1;
}
