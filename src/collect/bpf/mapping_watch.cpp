#include "collect/bpf/mapping_watch.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "collect/bpf/kernel_abi.hpp"
#include "util/console/log.hpp"
#include "util/system/cpu_list.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t PAGE = 4096;
constexpr std::size_t DATA_SIZE = 64 * PAGE;      // a power of two, as perf wants
constexpr std::size_t LONGEST_RECORD = 2 * PAGE;  // with a path of PATH_MAX

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

struct Mmap2Record {
  perf_event_header header;
  std::uint32_t pid, tid;
  std::uint64_t address, length, page_offset;
  std::uint32_t major, minor;
  std::uint64_t inode, inode_generation;
  std::uint32_t protection, flags;
  // then the file's name, NUL-padded to 8 bytes, then the time
};

}  // namespace

Result<MappingWatch> MappingWatch::open() {
  MappingWatch watch;
  for (int cpu : online_cpus())
    if (auto watched = watch.watch(cpu); !watched) return watched.error();
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
    if (errno == ENODEV) return ok();  // went offline meanwhile
    bool forbidden = errno == EACCES || errno == EPERM;
    Error error = errno_error("perf_event_open for mmap events");
    if (forbidden) error.message += " (CAP_SYS_ADMIN is missing)";
    return error;
  }
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  void* memory = mmap(nullptr, PAGE + DATA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errno_error("mmap of a perf buffer");
  buffers_.push_back({cpu, std::move(fd), memory, counts_lost});
  return ok();
}

std::size_t MappingWatch::renew() {
  std::vector<int> online = online_cpus();
  // The kernel takes the event from a CPU that goes, and gives none to the one that comes back.
  std::erase_if(buffers_, [&](Buffer& buffer) {
    bool gone = std::find(online.begin(), online.end(), buffer.cpu) == online.end();
    if (gone && buffer.memory) munmap(buffer.memory, PAGE + DATA_SIZE);
    return gone;
  });
  std::size_t came = 0;
  for (int cpu : online) {
    bool watched = std::any_of(buffers_.begin(), buffers_.end(),
                               [cpu](const Buffer& buffer) { return buffer.cpu == cpu; });
    if (watched) continue;
    came++;
    auto begun = this->watch(cpu);
    if (begun) continue;
    log::warning("a libcuda that is first mapped on CPU {} is not noticed: {}", cpu,
                 begun.error().message);
    buffers_.push_back({cpu, Fd(), nullptr});  // not tried again
  }
  return came;
}

MappingWatch::~MappingWatch() {
  for (Buffer& buffer : buffers_)
    if (buffer.memory) munmap(buffer.memory, PAGE + DATA_SIZE);
}

std::vector<int> MappingWatch::fds() const {
  std::vector<int> fds;
  for (const Buffer& buffer : buffers_) fds.push_back(buffer.fd.get());
  return fds;
}

// How many records found no room since it was last asked. A kernel that does not count them is
// taken to have lost one.
std::uint64_t MappingWatch::newly_lost(Buffer& buffer) {
  if (!buffer.counts_lost) return 1;
  struct {
    std::uint64_t value, lost;
  } counted;
  if (::read(buffer.fd.get(), &counted, sizeof(counted)) != sizeof(counted)) return 1;
  return counted.lost - std::exchange(buffer.lost, counted.lost);
}

void MappingWatch::read_buffer(Buffer& buffer, std::vector<MappedLibrary>& found,
                               std::uint64_t& overruns) {
  auto* page = static_cast<perf_event_mmap_page*>(buffer.memory);
  const char* data = static_cast<const char*>(buffer.memory) + PAGE;
  std::atomic_ref data_head(page->data_head);
  std::uint64_t head = data_head.load(std::memory_order_acquire);
  const std::uint64_t begun_at = page->data_tail;
  std::uint64_t tail = begun_at;
  std::vector<char> record;
  while (tail < head) {
    perf_event_header header;
    auto copy = [&](void* to, std::uint64_t from, std::size_t size) {
      for (std::size_t i = 0; i < size; i++)
        static_cast<char*>(to)[i] = data[(from + i) % DATA_SIZE];
    };
    copy(&header, tail, sizeof(header));
    if (header.size < sizeof(header) || header.size > head - tail) {  // no kernel writes that
      overruns++;
      tail = head;
      break;
    }
    record.resize(header.size);
    copy(record.data(), tail, header.size);
    tail += header.size;
    if (header.type != PERF_RECORD_MMAP2 || header.size <= sizeof(Mmap2Record) + 8) continue;
    Mmap2Record mapped;
    std::memcpy(&mapped, record.data(), sizeof(mapped));
    std::size_t name_size = header.size - sizeof(mapped) - 8;
    const char* name = record.data() + sizeof(mapped);
    std::string_view path(name, strnlen(name, name_size));
    // A path that is too long, or could not be made.
    if (path == "//toolong" || path == "//enomem") overruns++;
    constexpr std::string_view DELETED = " (deleted)";
    if (path.ends_with(DELETED)) path.remove_suffix(DELETED.size());
    if (!is_libcuda(path)) continue;
    MappedLibrary library;
    library.pid = mapped.pid;
    library.address = mapped.address;
    library.length = mapped.length;
    library.device = makedev(mapped.major, mapped.minor);
    library.inode = mapped.inode;
    library.path = path;
    std::memcpy(&library.ts, record.data() + header.size - 8, 8);
    found.push_back(std::move(library));
  }
  std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
  // A record of what was lost would come with the next mapping on this CPU, which may never be.
  if (data_head.load(std::memory_order_acquire) - begun_at > DATA_SIZE - LONGEST_RECORD)
    overruns += newly_lost(buffer);
}

std::vector<MappedLibrary> MappingWatch::read(std::uint64_t& overruns) {
  std::vector<MappedLibrary> found;
  for (Buffer& buffer : buffers_)
    if (buffer.memory) read_buffer(buffer, found, overruns);
  return found;
}

}  // namespace cudabpf
