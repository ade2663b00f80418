// The structs of the kernel driver's ioctls, as in version 580, for the ioctls that the simulated
// driver makes: "escapes" on nvidiactl and nvidiaN, and UVM's on nvidia-uvm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake::nvos {

enum : uint32_t {  // numbers of escapes
  kAllocMemory = 0x27,
  kFree = 0x29,
  kControl = 0x2a,
  kAlloc = 0x2b,
  kMapMemory = 0x4e,
  kUnmapMemory = 0x4f,
  kGetEventData = 0x52,
  kCardInfo = 0xc8,
  kRegisterFd = 0xc9,
  kAllocOsEvent = 0xce,
  kFreeOsEvent = 0xcf,
  kCheckVersion = 0xd2,
  kXfer = 0xd3,
  kSysParams = 0xd6,
  kNumaInfo = 0xd7,
  kWaitOpen = 0xda,
};

enum : uint32_t {  // UVM's
  kUvmRegisterVaSpace = 25,
  kUvmUnregisterVaSpace = 26,
  kUvmRegisterChannel = 27,
  kUvmUnregisterChannel = 28,
  kUvmMapExternal = 33,
  kUvmFree = 34,
  kUvmRegisterGpu = 37,
  kUvmSemaphorePool = 68,
  kUvmCreateRange = 73,
  kUvmMmInitialize = 75,
  kUvmInitialize = 0x30000001,
};

enum : uint32_t {  // classes
  kClient = 0x41,
  kSystemMemory = 0x3e,
  kVideoMemory = 0x40,
  kOsDescriptor = 0x71,
  kOsEvent = 0x79,
  kDevice = 0x80,
  kSubdevice = 0x2080,
  kContextShare = 0x9067,
  kVaSpace = 0x90f1,
  kChannelGroup = 0xa06c,
  kUsermode = 0xc661,
  kChannel = 0xc86f,
  kCopyEngine = 0xc8b5,
  kCompute = 0xcbc0,
};

enum : uint32_t {  // controls
  kGetAttachedIds = 0x201,
  kGetIdInfo = 0x205,
  kGetInfo = 0x20800102,
  kSetNotification = 0x20800301,
  kGrGetInfo = 0x20801201,
  kSetPreemptionMode = 0x20801210,
  kGetBarInfo = 0x20801803,
  kGetAllCaps = 0x20802a0a,
  kGetClassEngine = 0x906f0101,
  kSchedule = 0xa06c0101,
  kSetTimeslice = 0xa06c0103,
  kGetToken = 0xc36f0108,
};

struct Alloc21 {  // NVOS21
  uint32_t root, parent, object, klass;
  uint64_t parameters;
  uint32_t parameters_size, status;
};
static_assert(sizeof(Alloc21) == 32);

struct Alloc64 {  // NVOS64
  uint32_t root, parent, object, klass;
  uint64_t parameters, rights;
  uint32_t parameters_size, flags, status, reserved;
};
static_assert(sizeof(Alloc64) == 48);

struct Control {  // NVOS54
  uint32_t client, object, command, flags;
  uint64_t parameters;
  uint32_t parameters_size, status;
};
static_assert(sizeof(Control) == 32);

struct Free {  // NVOS00
  uint32_t root, parent, object, status;
};
static_assert(sizeof(Free) == 16);

struct AllocMemory {  // NVOS02 and a descriptor
  uint32_t root, parent, object, klass, flags, reserved;
  uint64_t memory, limit;
  uint32_t status, reserved2;
  int32_t fd;
  uint32_t reserved3;
};
static_assert(sizeof(AllocMemory) == 56);

struct MapMemory {  // NVOS33 and a descriptor
  uint32_t client, device, memory, reserved;
  uint64_t offset, length, address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t reserved2;
};
static_assert(sizeof(MapMemory) == 56);

struct UnmapMemory {  // NVOS34
  uint32_t client, device, memory, reserved;
  uint64_t address;
  uint32_t status, flags;
};
static_assert(sizeof(UnmapMemory) == 32);

struct EventData {  // NVOS41
  uint64_t event;
  uint32_t more, status;
};
static_assert(sizeof(EventData) == 16);

struct OsEvent {
  uint32_t client, device, fd, status;
};
static_assert(sizeof(OsEvent) == 16);

struct RegisterFd {
  int32_t ctl_fd;
};

struct Version {
  uint32_t command, reply;
  char text[64];
};
static_assert(sizeof(Version) == 72);

struct SysParams {
  uint64_t memory_block;
};

struct CardInfo {
  unsigned char cards[32][72];
};

struct NumaInfo {
  int32_t node;
  uint32_t memory_status;  // online or not; not an NV_STATUS
  unsigned char rest[552];
};
static_assert(sizeof(NumaInfo) == 560);

struct WaitOpen {
  int32_t result;
  uint32_t status;
};

struct Xfer {
  uint32_t number, size;
  uint64_t address;
};
static_assert(sizeof(Xfer) == 16);

// --- what RM_ALLOC's pointer points to

struct MemoryParams {  // NV_MEMORY_ALLOCATION_PARAMS
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attributes, attributes2, format, compression, zcull, reserved;
  uint64_t range_low, range_high;
  uint64_t size, alignment, offset, limit, address;
  uint32_t context_memory, va_space;
  uint16_t internal[4];
  int32_t numa_node;
  uint32_t reserved2;
};
static_assert(sizeof(MemoryParams) == 128 && offsetof(MemoryParams, size) == 64 &&
              offsetof(MemoryParams, va_space) == 108 && offsetof(MemoryParams, numa_node) == 120);

struct ChannelParams {  // NV_CHANNEL_ALLOC_PARAMS
  uint32_t error, buffer;
  uint64_t fifo_offset;
  uint32_t fifo_entries, flags, context_share, va_space;
  unsigned char userd[96];
  uint32_t engine;
  unsigned char rest[236];
};
static_assert(sizeof(ChannelParams) == 368 && offsetof(ChannelParams, fifo_entries) == 16 &&
              offsetof(ChannelParams, engine) == 128);

struct ChannelGroupParams {
  uint32_t error, buffer, va_space, engine, reserved;
};
static_assert(sizeof(ChannelGroupParams) == 20);

struct ContextShareParams {
  uint32_t va_space, flags, id;
};

struct VaSpaceParams {
  uint32_t index, flags;
  uint64_t size;
  unsigned char rest[40];
};
static_assert(sizeof(VaSpaceParams) == 56);

struct DeviceParams {
  uint32_t device, client_share;
  unsigned char rest[48];
};
static_assert(sizeof(DeviceParams) == 56);

struct OsEventParams {
  uint32_t client, source, klass, index;
  uint64_t data;
};
static_assert(sizeof(OsEventParams) == 24);

// --- UVM

struct Uuid {
  unsigned char bytes[16];
};

struct UvmInitialize {
  uint64_t flags;
  uint32_t status, reserved;
};
static_assert(sizeof(UvmInitialize) == 16);

struct UvmMmInitialize {
  int32_t fd;
  uint32_t status;
};

struct UvmRegisterGpu {
  Uuid gpu;
  uint8_t numa;
  int32_t node, fd;
  uint32_t client, partition, status;
};
static_assert(sizeof(UvmRegisterGpu) == 40);

struct UvmRegisterVaSpace {
  Uuid gpu;
  int32_t fd;
  uint32_t client, va_space, status;
};
static_assert(sizeof(UvmRegisterVaSpace) == 32);

struct UvmUnregisterVaSpace {
  Uuid gpu;
  uint32_t status;
};
static_assert(sizeof(UvmUnregisterVaSpace) == 20);

struct UvmRegisterChannel {
  Uuid gpu;
  int32_t fd;
  uint32_t client, channel, reserved;
  uint64_t base, length;
  uint32_t status, reserved2;
};
static_assert(sizeof(UvmRegisterChannel) == 56);

struct UvmUnregisterChannel {
  Uuid gpu;
  uint32_t client, channel, status;
};
static_assert(sizeof(UvmUnregisterChannel) == 28);

struct UvmRange {  // CREATE_EXTERNAL_RANGE, FREE
  uint64_t base, length;
  uint32_t status, reserved;
};
static_assert(sizeof(UvmRange) == 24);

struct UvmGpuAttributes {
  Uuid gpu;
  uint32_t mapping, caching, format, element_bits, compression;
};
static_assert(sizeof(UvmGpuAttributes) == 36);

struct UvmMapExternal {
  uint64_t base, length, offset;
  UvmGpuAttributes gpus[256];
  uint64_t gpu_count;
  int32_t fd;
  uint32_t client, memory, status;
};
static_assert(sizeof(UvmMapExternal) == 9264);

struct UvmSemaphorePool {
  uint64_t base, length;
  UvmGpuAttributes gpus[256];
  uint64_t gpu_count;
  uint32_t status, reserved;
};
static_assert(sizeof(UvmSemaphorePool) == 9248);

}  // namespace fake::nvos
