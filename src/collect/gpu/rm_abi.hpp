// The part of the resource manager that cudabpf uses, the part of NVIDIA's driver behind
// /dev/nvidiactl. Its interface has no version: numbers and structs are those of the open kernel
// module 580.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudabpf::rm {

using Handle = std::uint32_t;

constexpr char MAGIC = 'F';  // of its ioctls

enum class Escape : unsigned {
  free = 0x29,
  control = 0x2a,
  alloc = 0x2b,
  map_memory = 0x4e,
  card_info = 0xc8,
  register_fd = 0xc9,
};

enum class Class : std::uint32_t {
  root_client = 0x41,
  device = 0x80,
  subdevice = 0x2080,
  event_buffer = 0x90cd,
  memory_deviceless = 0x90ce,
};

enum class Control : std::uint32_t {
  gpu_id_info = 0x205,
  time_correlation = 0x20800406,
  bind_switches = 0x20801238,
  enable_events = 0x90cd0101,
  update_get = 0x90cd0102,
  flush = 0x90cd0104,
};

constexpr std::uint32_t OK = 0;
constexpr std::uint32_t NO_ANSWER = ~0u;  // a status that the driver has not written

// ----- ioctls

struct Free {
  Handle client, parent, object;
  std::uint32_t status;
};
static_assert(sizeof(Free) == 16);

struct Alloc {
  Handle client, parent, object;
  Class of;
  std::uint64_t parameters, rights;
  std::uint32_t parameters_size, flags, status, padding;
};
static_assert(sizeof(Alloc) == 48 && offsetof(Alloc, status) == 40);

struct ControlCall {
  Handle client, object;
  Control command;
  std::uint32_t flags;
  std::uint64_t parameters;
  std::uint32_t parameters_size, status;
};
static_assert(sizeof(ControlCall) == 32 && offsetof(ControlCall, status) == 28);

struct MapMemory {
  Handle client, device, memory;
  std::uint32_t padding;
  std::uint64_t offset, length, address;
  std::uint32_t status, flags;
  int fd;  // the next mmap of this descriptor gives the memory
  std::uint32_t padding_of_fd;
};
static_assert(sizeof(MapMemory) == 56 && offsetof(MapMemory, status) == 40 &&
              offsetof(MapMemory, fd) == 48);
constexpr std::uint32_t MAP_READ_ONLY = 1;

struct Card {
  std::uint8_t valid;
  std::uint32_t domain;
  std::uint8_t bus, slot, function;
  std::uint16_t vendor, device;
  std::uint32_t gpu_id;
  std::uint16_t interrupt;
  std::uint64_t registers, registers_size, memory, memory_size;
  std::uint32_t minor;  // N of /dev/nvidiaN
  std::uint8_t name[10];
};
static_assert(sizeof(Card) == 72 && offsetof(Card, domain) == 4 && offsetof(Card, gpu_id) == 16 &&
              offsetof(Card, minor) == 56);
constexpr std::size_t MAX_CARDS = 32;

// ----- parameters of new objects

struct DeviceParameters {
  std::uint32_t instance;
  Handle share, target_client, target_device;
  std::uint32_t flags, padding;
  std::uint64_t space_size, space_start, space_limit;
  std::uint32_t space_mode, padding_at_end;
};
static_assert(sizeof(DeviceParameters) == 56);

struct SubdeviceParameters {
  std::uint32_t instance;
};
static_assert(sizeof(SubdeviceParameters) == 4);

struct MemoryParameters {
  std::uint32_t owner, type, flags, width, height, pitch, attributes, more_attributes, format,
      compression, depth_compression, padding;
  std::uint64_t range_low, range_high, size, alignment, offset, limit, address;
  std::uint32_t tag_offset, space, internal_flags, tag, numa_node, padding_at_end;
};
static_assert(sizeof(MemoryParameters) == 128 && offsetof(MemoryParameters, attributes) == 24 &&
              offsetof(MemoryParameters, size) == 64);
constexpr std::uint32_t WRITE_BACK = 5u << 29;      // of `attributes`
constexpr std::uint32_t USER_READ_ONLY = 1u << 22;  // of `more_attributes`

struct EventBufferParameters {
  std::uint64_t header_address, records_address;
  std::uint32_t record_size, record_count;
  std::uint64_t variable_address;
  std::uint32_t variable_size, records_threshold;
  std::uint64_t notification;
  std::uint32_t variable_threshold;
  Handle subdevice;
  std::uint32_t flags;
  Handle header, records, variable;
};
static_assert(sizeof(EventBufferParameters) == 72 &&
              offsetof(EventBufferParameters, subdevice) == 52);

// ----- parameters of controls

struct GpuIdInfo {
  std::uint32_t gpu_id, flags, device_instance, subdevice_instance, sli, board, gpu_instance, numa;
};
static_assert(sizeof(GpuIdInfo) == 32);

struct EnableEvents {
  std::uint8_t enable, padding[3];
  std::uint32_t flags;
};
static_assert(sizeof(EnableEvents) == 8);
// When the ring is full, later records are dropped and counted; those in the ring stay until they
// are read.
constexpr std::uint32_t KEEP_OLDEST = 1;

struct UpdateGet {
  std::uint32_t records, variable;
};
static_assert(sizeof(UpdateGet) == 8);

struct BindSwitches {
  Handle event_buffer;
  std::uint32_t record_size, detail, filter;
  std::uint8_t all_users, padding[3];
  std::uint32_t reason;
};
static_assert(sizeof(BindSwitches) == 24);
constexpr std::uint32_t STARTS_AND_ENDS = 1;  // the detail

struct TimeCorrelation {
  std::uint8_t clock, count, padding[6];
  struct {
    std::uint64_t cpu, gpu;
  } samples[16];
};
static_assert(sizeof(TimeCorrelation) == 264 && offsetof(TimeCorrelation, samples) == 8);
constexpr std::uint8_t MONOTONIC_RAW = 3;  // the clock

// ----- the ring that the driver writes

struct RingHeader {
  std::uint32_t get, put;
  std::uint64_t count, dropped, variable_dropped;
};
static_assert(sizeof(RingHeader) == 32 && offsetof(RingHeader, dropped) == 16);

struct Record {
  std::uint16_t type, subtype;
  std::uint32_t variable;
  std::uint8_t tag, vmid;
  std::uint16_t seqno;
  std::uint32_t context, pid;
  std::uint16_t reserved;
  std::uint8_t gpu_instance, compute_instance;
  std::uint64_t time;
};
static_assert(sizeof(Record) == 32 && offsetof(Record, tag) == 8 && offsetof(Record, pid) == 16 &&
              offsetof(Record, time) == 24);
constexpr std::size_t RECORD_HEAD = offsetof(Record, tag);
constexpr std::uint16_t CONTEXT_SWITCH = 2;                      // the type
constexpr std::uint8_t CONTEXT_STARTS = 6, CONTEXT_ENDS = 7;     // tags
constexpr std::uint8_t NO_INSTANCE = 0xff;                       // the GPU is not divided (MIG)
constexpr std::uint32_t DRIVERS_OWN_PID = ~0u, HIDDEN_PID = 0u;  // pids of no process

}  // namespace cudabpf::rm
