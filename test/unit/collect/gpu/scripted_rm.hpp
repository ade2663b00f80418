// The resource manager as a test wants it: its ioctls answered here, its memory a memfd's.
#pragma once

#include <linux/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "collect/gpu/rm_client.hpp"
#include "util/system/clock.hpp"

namespace samples {

struct RmScript {
  std::string missing_node{};  // cannot be opened
  std::map<cudabpf::rm::Control, std::uint32_t> control_status{};
  std::map<cudabpf::rm::Class, std::uint32_t> class_status{};
  unsigned cards = 1;
  std::uint64_t gpu_ahead_ns = 1'000'000'000'000;  // of the CPU's clock
  std::uint64_t cpu_wrong_ns = 0;

  std::map<cudabpf::rm::Control, unsigned> requests{};
  std::vector<cudabpf::rm::Class> made{};
  std::uint32_t updated_get = 0;
  int clients = 0;
  std::vector<int> memories{};  // memfds, in the order in which they were mapped: header, ring, …

  std::uint64_t gpu_now() const { return cudabpf::now_ns(CLOCK_MONOTONIC_RAW) + gpu_ahead_ns; }
};
inline RmScript rm_script;
inline std::atomic<bool> rm_refuses;  // what was recorded; another thread may be requesting it

inline int rm_open(const char* path) {
  if (path == rm_script.missing_node) {
    errno = ENOENT;
    return -1;
  }
  return memfd_create("rm", MFD_CLOEXEC);
}

inline std::uint32_t rm_control(const cudabpf::rm::ControlCall& call) {
  using namespace cudabpf::rm;
  rm_script.requests[call.command]++;
  if (rm_refuses && call.command == Control::flush) return 0x1b;
  if (auto found = rm_script.control_status.find(call.command);
      found != rm_script.control_status.end())
    return found->second;
  auto* parameters = reinterpret_cast<void*>(call.parameters);
  if (call.command == Control::time_correlation) {
    auto& times = *static_cast<TimeCorrelation*>(parameters);
    std::uint64_t raw = cudabpf::now_ns(CLOCK_MONOTONIC_RAW);
    times.samples[0] = {raw + rm_script.cpu_wrong_ns, raw + rm_script.gpu_ahead_ns};
  }
  if (call.command == Control::update_get)
    rm_script.updated_get = static_cast<UpdateGet*>(parameters)->records;
  if (call.command == Control::bind_switches &&
      (call.parameters_size != 24 || !static_cast<BindSwitches*>(parameters)->all_users))
    return 0x1f;
  return OK;
}

inline std::uint32_t rm_alloc(cudabpf::rm::Alloc& call) {
  using namespace cudabpf::rm;
  if (auto found = rm_script.class_status.find(call.of); found != rm_script.class_status.end())
    return found->second;
  rm_script.made.push_back(call.of);
  if (call.of == Class::root_client) {
    rm_script.clients++;
    call.object = 0xc1d00001;
  }
  return OK;
}

inline int rm_ioctl(int, unsigned long request, void* argument) {
  using namespace cudabpf::rm;
  switch (static_cast<Escape>(_IOC_NR(request))) {
    case Escape::card_info: {
      auto* cards = static_cast<Card*>(argument);
      for (unsigned i = 0; i < rm_script.cards; i++) {
        cards[i].valid = 1;
        cards[i].bus = static_cast<std::uint8_t>(0x3b + i);
        cards[i].gpu_id = 0x3b00 + i;
        cards[i].minor = i;
      }
      return 0;
    }
    case Escape::register_fd:
      return 0;
    case Escape::alloc:
      static_cast<Alloc*>(argument)->status = rm_alloc(*static_cast<Alloc*>(argument));
      return 0;
    case Escape::control:
      static_cast<ControlCall*>(argument)->status =
          rm_control(*static_cast<ControlCall*>(argument));
      return 0;
    case Escape::map_memory: {
      auto* call = static_cast<MapMemory*>(argument);
      if (ftruncate(call->fd, static_cast<off_t>(call->length)) != 0) return -1;
      rm_script.memories.push_back(dup(call->fd));
      call->status = OK;
      return 0;
    }
    case Escape::free:
      rm_script.clients--;
      static_cast<Free*>(argument)->status = OK;
      return 0;
  }
  errno = ENOTTY;
  return -1;
}

inline cudabpf::rm::System scripted_rm(RmScript as) {
  for (int fd : rm_script.memories) close(fd);
  rm_script = std::move(as);
  rm_refuses = false;
  return {rm_open, rm_ioctl, [](int fd, std::size_t size) {
            return ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
          }};
}

// What the driver writes into the ring of one GPU.
class ScriptedRing {
 public:
  explicit ScriptedRing(unsigned gpu = 0)
      : header_(rm_script.memories.at(gpu * 2)), records_(rm_script.memories.at(gpu * 2 + 1)) {}

  void record(std::uint64_t time, std::uint8_t tag, std::uint32_t pid) {
    cudabpf::rm::Record record{};
    record.type = cudabpf::rm::CONTEXT_SWITCH;
    record.tag = tag;
    record.seqno = seqno_++;
    record.context = 1;
    record.pid = pid;
    record.gpu_instance = record.compute_instance = cudabpf::rm::NO_INSTANCE;
    record.time = time;
    write(record);
  }
  void write(const cudabpf::rm::Record& record) {
    put_in(records_, header.put * sizeof(record), record);
    header.put = (header.put + 1) % 16384;
    publish();
  }
  void publish() { put_in(header_, 0, header); }

  cudabpf::rm::RingHeader header{};

 private:
  template <typename T>
  static void put_in(int fd, std::size_t at, const T& value) {
    if (pwrite(fd, &value, sizeof(value), static_cast<off_t>(at)) != sizeof(value)) std::abort();
  }
  int header_, records_;
  std::uint16_t seqno_ = 0;
};

}  // namespace samples
