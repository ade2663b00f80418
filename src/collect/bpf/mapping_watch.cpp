#include "collect/bpf/mapping_watch.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "collect/bpf/kernel_abi.hpp"
#include "util/console/log.hpp"
#include "util/system/cpu_list.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t PAGE = 4096;
constexpr std::size_t DATA_SIZE = 64 * PAGE;  // a power of two, as perf wants
constexpr std::size_t MAX_RECORD = 2 * PAGE;  // with a path of PATH_MAX

int open_event(int cpu, std::uint64_t read_format) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.sample_id_all = 1;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.read_format = read_format;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

void MappingWatch::Unmap::operator()(void* memory) const { munmap(memory, PAGE + DATA_SIZE); }

Result<MappingWatch> MappingWatch::open() {
  MappingWatch watch;
  for (int cpu : online_cpus()) TRY(watch.watch(cpu));
  return watch;
}

Result<> MappingWatch::watch(int cpu) {
  bool counts_lost = true;
  Fd fd(open_event(cpu, PERF_READ_LOST));
  if (!fd && errno == EINVAL) {  // before Linux 6.0
    counts_lost = false;
    fd = Fd(open_event(cpu, 0));
  }
  if (!fd) {
    if (errno == ENODEV) return ok();  // it has gone offline
    bool forbidden = errno == EACCES || errno == EPERM;
    Error error = errno_error("perf_event_open for mmap events");
    if (forbidden) error.message += " (CAP_SYS_ADMIN is missing)";
    return error;
  }
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  void* memory = mmap(nullptr, PAGE + DATA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errno_error("mmap of a perf buffer");
  buffers_.push_back({cpu, std::move(fd), Memory(memory), counts_lost});
  return ok();
}

std::size_t MappingWatch::renew() {
  std::lock_guard lock(*mutex_);
  std::vector<int> online = online_cpus();
  // A CPU that goes offline loses its event, and does not get it back when it comes online again.
  std::erase_if(buffers_, [&](const Buffer& buffer) {
    return std::find(online.begin(), online.end(), buffer.cpu) == online.end();
  });
  std::size_t came = 0;
  for (int cpu : online) {
    bool watched = std::any_of(buffers_.begin(), buffers_.end(),
                               [cpu](const Buffer& buffer) { return buffer.cpu == cpu; });
    if (watched) continue;
    came++;
    unread_.code_lost = true;
    auto begun = this->watch(cpu);
    if (begun) continue;
    log::warning("a libcuda that is first mapped on CPU {} is not noticed: {}", cpu,
                 begun.error().message);
    buffers_.push_back({cpu, Fd(), {}});  // not tried again
  }
  return came;
}

std::vector<int> MappingWatch::fds() const {
  std::vector<int> fds;
  for (const Buffer& buffer : buffers_) fds.push_back(buffer.fd.get());
  return fds;
}

// How many records found no room since the last call. A kernel that does not count them is assumed
// to have lost one.
std::uint64_t MappingWatch::newly_lost(Buffer& buffer) {
  if (!buffer.counts_lost) return 1;
  struct {
    std::uint64_t value, lost;
  } counted;
  if (::read(buffer.fd.get(), &counted, sizeof(counted)) != sizeof(counted)) return 1;
  return counted.lost - std::exchange(buffer.lost, counted.lost);
}

void MappingWatch::read_buffer(Buffer& buffer, MappingsRead& read) {
  auto* page = static_cast<perf_event_mmap_page*>(buffer.memory.get());
  std::span data(static_cast<const std::byte*>(buffer.memory.get()) + PAGE, DATA_SIZE);
  std::atomic_ref data_head(page->data_head);
  std::uint64_t head = data_head.load(std::memory_order_acquire);
  const std::uint64_t tail = page->data_tail;
  read_mapping_records(data, tail, head, read);
  std::atomic_ref(page->data_tail).store(head, std::memory_order_release);
  // A record of the loss would come only with the next mapping on this CPU, which may never happen.
  if (data_head.load(std::memory_order_acquire) - tail <= DATA_SIZE - MAX_RECORD) return;
  std::uint64_t lost = newly_lost(buffer);
  read.unnamed += lost;
  read.code_lost |= lost > 0;
}

void MappingWatch::read_buffers() {
  for (Buffer& buffer : buffers_)
    if (buffer.memory) read_buffer(buffer, unread_);
}

MappingsRead MappingWatch::read() {
  std::lock_guard lock(*mutex_);
  read_buffers();
  MappingsRead read = std::exchange(unread_, {});
  unread_.code = std::move(read.code);
  unread_.code_lost = read.code_lost;
  return read;
}

MappingWatch::Code MappingWatch::read_code() {
  std::lock_guard lock(*mutex_);
  read_buffers();
  return {std::exchange(unread_.code, {}), std::exchange(unread_.code_lost, false)};
}

}  // namespace cudabpf
