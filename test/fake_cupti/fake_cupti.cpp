// The simulated CUPTI. See README.md.
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu_operation.h"
#include "records.hpp"

namespace fake {
namespace {

std::string setting(const char* name) {
  const char* value = std::getenv((std::string("FAKE_CUPTI_") + name).c_str());
  return value ? value : "";
}
unsigned long number(const char* name, unsigned long otherwise = 0) {
  const std::string text = setting(name);
  return text.empty() ? otherwise : std::strtoul(text.c_str(), nullptr, 10);
}

uint64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "fake_cupti: %s\n", what);
  std::abort();
}

// By one write, since processes share the file: in pieces, they would cut each other's lines.
void append(const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail("its record cannot be opened");
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail("its record cannot be written");
  close(file);
}

using Give = void (*)(uint8_t** buffer, size_t* size, size_t* most);
using Take = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t filled);

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, filled = 0;
  unsigned long flushes = 0;       // since it was full
  std::vector<std::string> lines;  // what is written down when it is handed out
};

struct Here {  // a thread
  Here();
  ~Here();
  Buffer buffer;
};

// It is gone once the process ends its libraries, which may take a while.
struct Lifetime {
  ~Lifetime() {
    over = true;
    usleep(static_cast<useconds_t>(number("END_TAKES") * 1000));
  }
  std::atomic<bool> over{false};
} lifetime;

// The real one reads freed memory then.
void check_alive() {
  if (lifetime.over) fail("it was called after its end");
}

class Cupti {
 public:
  std::set<uint32_t> kinds;
  Give give = nullptr;
  Take take = nullptr;
  size_t dropped = 0;
  bool was_disabled = false;

  // Called in the issuing thread. No lock of the library's is held while a buffer is requested.
  void did(const GpuOperation* operations, uint32_t count, bool in_graph) {
    const bool whole = in_graph && kinds.contains(GRAPH_TRACE);
    if (!give || (!whole && std::none_of(operations, operations + count,
                                         [this](const GpuOperation& one) { return wants(one); })))
      return;
    const uint32_t correlation = next_correlation();
    if (whole) return whole_graph(operations, count, correlation);
    for (uint32_t i = 0; i < count; ++i)
      if (wants(operations[i])) one(operations[i], in_graph ? i + 1 : 0, correlation);
  }

  void flush(bool forced) {
    const std::lock_guard handing_out(handing_out_);
    std::vector<Buffer> ready;
    {
      const std::lock_guard lock(mutex_);
      for (Here* here : threads_)
        if (here->buffer.filled) full_.push_back(std::exchange(here->buffer, {}));
      const unsigned long late = forced ? 0 : number("LATE");
      for (Buffer& buffer : full_)
        if (buffer.flushes++ >= late) ready.push_back(std::exchange(buffer, {}));
      std::erase_if(full_, [](const Buffer& buffer) { return !buffer.data; });
    }
    if (!setting("BACKWARDS").empty()) std::reverse(ready.begin(), ready.end());
    for (Buffer& buffer : ready) hand_out(buffer);
  }

  // Full buffers, at once, as long as there are any.
  void work() {
    while (!lifetime.over) {
      usleep(500);
      const std::lock_guard handing_out(handing_out_);
      std::vector<Buffer> ready;
      {
        const std::lock_guard lock(mutex_);
        ready.swap(full_);
      }
      for (Buffer& buffer : ready) hand_out(buffer);
    }
  }

  void came(Here* here) {
    const std::lock_guard lock(mutex_);
    threads_.insert(here);
  }
  void went(Here* here) {
    const std::lock_guard lock(mutex_);
    threads_.erase(here);
    if (here->buffer.data) full_.push_back(std::exchange(here->buffer, {}));
  }

 private:
  bool wants(const GpuOperation& work) const {
    return kinds.contains(work.op == GpuOp::kernel ? CONCURRENT_KERNEL
                          : work.op == GpuOp::copy ? MEMCPY
                                                   : MEMSET);
  }

  uint32_t next_correlation() {
    const std::lock_guard lock(mutex_);
    return ++correlations_;
  }

  // When it begins and ends, on CLOCK_MONOTONIC.
  std::pair<uint64_t, uint64_t> times(const void* stream, uint64_t takes) {
    const std::lock_guard lock(mutex_);
    uint64_t& until = busy_until_[stream];
    const uint64_t begin = std::max(until, now(CLOCK_MONOTONIC) + 5000);
    until = begin + takes;
    return {begin, until};
  }

  // By how much its clock is ahead of CLOCK_MONOTONIC.
  static uint64_t ahead() {
    static const uint64_t ahead = [] {
      uint64_t best = ~uint64_t{0}, found = 0;
      for (int i = 0; i < 64; ++i) {  // a thread may be interrupted between two readings
        const uint64_t before = now(CLOCK_MONOTONIC), real = now(CLOCK_REALTIME),
                       took = now(CLOCK_MONOTONIC) - before;
        if (took >= best) continue;
        best = took;
        found = real - before - took / 2;
      }
      return found + number("CLOCK");
    }();
    return ahead;
  }

  // Streams have numbers, which are not those of their handles.
  uint32_t number_of(const void* stream) {
    const std::lock_guard lock(mutex_);
    auto [known, is_new] = streams_.try_emplace(stream, static_cast<uint32_t>(7 + streams_.size()));
    return known->second;
  }

  const char* kept(const char* name) {
    const std::lock_guard lock(mutex_);
    return names_.insert(name ? name : "").first->c_str();
  }

  template <typename Record>
  void fill(Record& record, uint32_t kind, const void* stream, uint32_t correlation,
            std::pair<uint64_t, uint64_t> when, bool zero) {
    record.kind = kind;
    record.correlationId = correlation;
    record.contextId = 1;
    record.streamId = number_of(stream);
    const uint64_t by = ahead();
    record.start = zero ? 0 : when.first + by;
    record.end = zero ? 0 : when.second + by;
  }

  void one(const GpuOperation& work, uint32_t node, uint32_t correlation) {
    const uint64_t us = work.op == GpuOp::kernel ? work.grid[0] : 1 + work.size / 4096;
    const auto when = times(work.stream, us * 1000);
    const uint64_t count = ++records_;
    const unsigned long drop = number("DROP"), zeroes = number("ZERO");
    if (drop && count % drop == 0) {
      const std::lock_guard lock(mutex_);
      ++dropped;
      return;
    }
    const bool zero = zeroes && count % zeroes == 0;
    char line[1024];
    const int length = std::snprintf(
        line, sizeof line,
        R"({"op":"%s","tid":%ld,"correlation":%u,"stream":%llu,"begin_ns":%llu,"end_ns":%llu,"size":%llu,"shared":%u,"node":%u,"zero":%s,"kernel":"%s","grid":[%u,%u,%u],"block":[%u,%u,%u]})"
        "\n",
        work.op == GpuOp::kernel ? "kernel"
        : work.op == GpuOp::copy ? "copy"
                                 : "set",
        syscall(SYS_gettid), correlation, reinterpret_cast<unsigned long long>(work.stream),
        static_cast<unsigned long long>(when.first), static_cast<unsigned long long>(when.second),
        static_cast<unsigned long long>(work.size), work.shared, node, zero ? "true" : "false",
        work.kernel ? work.kernel : "", work.grid[0], work.grid[1], work.grid[2], work.block[0],
        work.block[1], work.block[2]);
    const std::string text(line, static_cast<size_t>(std::min<int>(length, sizeof line - 1)));
    if (work.op == GpuOp::kernel) {
      KernelRecord record{};
      fill(record, CONCURRENT_KERNEL, work.stream, correlation, when, zero);
      record.gridX = static_cast<int32_t>(work.grid[0]);
      record.gridY = static_cast<int32_t>(work.grid[1]);
      record.gridZ = static_cast<int32_t>(work.grid[2]);
      record.blockX = static_cast<int32_t>(work.block[0]);
      record.blockY = static_cast<int32_t>(work.block[1]);
      record.blockZ = static_cast<int32_t>(work.block[2]);
      record.dynamicSharedMemory = static_cast<int32_t>(work.shared);
      record.name = kept(work.kernel);
      put(record, node, text);
    } else if (work.op == GpuOp::copy) {
      CopyRecord record{};
      fill(record, MEMCPY, work.stream, correlation, when, zero);
      record.copyKind = 1;
      record.bytes = work.size;
      put(record, node, text);
    } else {
      FillRecord record{};
      fill(record, MEMSET, work.stream, correlation, when, zero);
      record.bytes = work.size;
      put(record, node, text);
    }
  }

  template <typename Record>
  void put(Record& record, uint32_t node, const std::string& line) {
    constexpr uint32_t GRAPH = 2;
    if (node) {
      record.graphId = GRAPH;
      record.graphNodeId = uint64_t{GRAPH} << 32 | node;
    }
    put_bytes(&record, sizeof record, line);
  }

  void whole_graph(const GpuOperation* operations, uint32_t count, uint32_t correlation) {
    const auto when = times(operations[0].stream, uint64_t{count} * 1000);
    GraphRecord record{};
    fill(record, GRAPH_TRACE, operations[0].stream, correlation, when, false);
    record.graphId = 2;
    char line[512];
    std::snprintf(
        line, sizeof line,
        R"({"op":"graph","tid":%ld,"correlation":%u,"stream":%llu,"begin_ns":%llu,"end_ns":%llu,"zero":false})"
        "\n",
        syscall(SYS_gettid), correlation,
        reinterpret_cast<unsigned long long>(operations[0].stream),
        static_cast<unsigned long long>(when.first), static_cast<unsigned long long>(when.second));
    put_bytes(&record, sizeof record, line);
  }

  void put_bytes(const void* record, size_t size, const std::string& line) {
    static thread_local Here here;
    {
      const std::lock_guard lock(mutex_);
      if (here.buffer.data && here.buffer.filled + size > here.buffer.size)
        full_.push_back(std::exchange(here.buffer, {}));
      if (here.buffer.data) return add(here.buffer, record, size, line);
    }
    Buffer fresh;
    size_t most = 0;
    give(&fresh.data, &fresh.size, &most);
    if (!fresh.data) fail("no buffer was given");  // CUPTI before 12.9 crashes
    const std::lock_guard lock(mutex_);
    here.buffer = std::move(fresh);
    add(here.buffer, record, size, line);
  }

  static void add(Buffer& buffer, const void* record, size_t size, const std::string& line) {
    // It was promised to be zero.
    for (size_t i = 0; i < size; ++i)
      if (buffer.data[buffer.filled + i]) fail("a buffer is not empty");
    std::memcpy(buffer.data + buffer.filled, record, size);
    buffer.filled += size;
    buffer.lines.push_back(line);
  }

  void hand_out(Buffer& buffer) {
    if (const std::string path = setting("RECORD"); !path.empty()) append(path, buffer.lines);
    const uint64_t before = now(CLOCK_MONOTONIC);
    take(nullptr, 0, buffer.data, buffer.size, buffer.filled);
    const uint64_t took = now(CLOCK_MONOTONIC) - before;
    if (const std::string path = setting("LONGEST"); !path.empty() && took > longest_) {
      longest_ = took;
      if (FILE* file = std::fopen(path.c_str(), "w")) {
        std::fprintf(file, "%llu\n", static_cast<unsigned long long>(took));
        std::fclose(file);
      }
    }
  }

  std::mutex handing_out_;  // is held by the thread that does
  uint64_t longest_ = 0;    // ns that handing out a buffer took
  std::mutex mutex_;
  std::set<Here*> threads_;
  std::vector<Buffer> full_;
  std::map<const void*, uint64_t> busy_until_;
  std::map<const void*, uint32_t> streams_;
  std::set<std::string> names_;
  uint32_t correlations_ = 0;
  std::atomic<uint64_t> records_{0};
};

Cupti& cupti() {
  static Cupti* one = new Cupti;
  return *one;
}

Here::Here() { cupti().came(this); }
Here::~Here() { cupti().went(this); }

size_t size_of(uint32_t kind) {
  switch (kind) {
    case CONCURRENT_KERNEL:
      return sizeof(KernelRecord);
    case MEMCPY:
      return sizeof(CopyRecord);
    case MEMSET:
      return sizeof(FillRecord);
    default:
      return sizeof(GraphRecord);
  }
}

}  // namespace
}  // namespace fake

using namespace fake;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void fake_cupti_did(const GpuOperation* operations, uint32_t count, bool in_graph) {
  cupti().did(operations, count, in_graph);
}

EXPORTED int cuptiGetVersion(uint32_t* version) {
  *version = static_cast<uint32_t>(number("VERSION", 130001));
  return SUCCESS;
}

EXPORTED int cuptiGetResultString(int result, const char** text) {
  *text = result == MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
              ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
              : "CUPTI_ERROR_SIMULATED";
  return SUCCESS;
}

EXPORTED int cuptiGetTimestamp(uint64_t* ns) {
  *ns = now(CLOCK_REALTIME) + number("CLOCK");  // as Cupti::ahead() has it
  return SUCCESS;
}

EXPORTED int cuptiSubscribe(void** subscriber, void* callback, void*) {
  if (!setting("BUSY").empty()) return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  *subscriber = callback;
  return callback ? SUCCESS : INVALID_PARAMETER;
}

EXPORTED int cuptiUnsubscribe(void*) { return SUCCESS; }

EXPORTED int cuptiActivitySetAttribute(int attribute, size_t*, void*) {
  return attribute == PER_THREAD_ACTIVITY_BUFFER && !setting("OLD").empty() ? INVALID_PARAMETER
                                                                            : SUCCESS;
}

EXPORTED int cuptiActivityRegisterCallbacks(Give give, Take take) {
  cupti().give = give;
  cupti().take = take;
  if (!setting("WORKER").empty()) std::thread([] { cupti().work(); }).detach();
  return SUCCESS;
}

// The real one crashes at some later time.
EXPORTED int cuptiActivityEnable(int kind) {
  if (cupti().was_disabled && kind != CONCURRENT_KERNEL)
    fail("it was switched on again for more than kernels");
  if (const int result = static_cast<int>(number("INVALID"))) return result;
  cupti().kinds.insert(static_cast<uint32_t>(kind));
  return SUCCESS;
}

EXPORTED int cuptiActivityDisable(int kind) {
  check_alive();
  cupti().was_disabled = true;
  cupti().kinds.erase(static_cast<uint32_t>(kind));
  return SUCCESS;
}

EXPORTED int cuptiActivityFlushAll(uint32_t forced) {
  check_alive();
  cupti().flush(forced != 0);
  return SUCCESS;
}

EXPORTED int cuptiActivityGetNextRecord(uint8_t* buffer, size_t filled, void** record) {
  uint8_t* next = buffer;
  if (*record) {
    uint32_t kind = 0;
    std::memcpy(&kind, *record, sizeof kind);
    next = static_cast<uint8_t*>(*record) + size_of(kind);
  }
  if (next >= buffer + filled) return MAX_LIMIT_REACHED;
  *record = next;
  return SUCCESS;
}

EXPORTED int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  *count = std::exchange(cupti().dropped, 0);
  return SUCCESS;
}
