#include "nccl.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

extern "C" uint32_t ncclBroadcast(uint64_t from, uint64_t to, uint64_t count, uint32_t type,
                                  int32_t root, void* comm, void* stream);

namespace fake_nccl {
namespace {

enum : uint32_t { SUCCESS = 0, UNHANDLED_CUDA_ERROR = 1, INVALID_ARGUMENT = 4, IN_PROGRESS = 7 };

// The program has loaded the driver.
template <typename... Arguments>
bool driver(const char* symbol, Arguments... arguments) {
  auto* function = reinterpret_cast<uint32_t (*)(Arguments...)>(dlsym(RTLD_DEFAULT, symbol));
  return function && function(arguments...) == 0;
}

struct Communicator {
  DevicePtr buffer = 0;
  Handle module = nullptr, kernel = nullptr;
  int32_t rank = 0, ranks = 0;
};

std::mutex mutex;
std::map<uint64_t, Communicator> communicators;  // by their handles
thread_local int depth = 0;                      // of calls
thread_local int groups = 0;
thread_local std::vector<uint64_t> queued;  // streams of collectives in the open group

uint64_t now() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<uint64_t>(at.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(at.tv_nsec);
}

uint32_t launch(uint64_t stream) {
  Handle kernel = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (communicators.empty()) return INVALID_ARGUMENT;
    kernel = communicators.begin()->second.kernel;
  }
  const char* blocks = std::getenv("FAKE_NCCL_BLOCKS");
  auto grid = static_cast<uint32_t>(blocks ? std::atoi(blocks) : 24);
  auto* on = reinterpret_cast<void*>(stream);
  void** none = nullptr;
  return driver("cuLaunchKernel", kernel, grid, 1U, 1U, 512U, 1U, 1U, 0U, on, none, none)
             ? SUCCESS
             : UNHANDLED_CUDA_ERROR;
}

// Handles of communicators that have gone are given out again, the lowest first; each copy of the
// library has its own, as addresses are.
uint32_t create(uint64_t* handle, int32_t rank, int32_t ranks) {
  Communicator made;
  made.rank = rank;
  made.ranks = ranks;
  const void* image = "nccl";
  if (!driver("cuModuleLoadData", &made.module, image) ||
      !driver("cuModuleGetFunction", &made.kernel, made.module,
              "ncclDevKernel_AllReduce_Sum_f32_RING_LL") ||
      !driver("cuMemAlloc_v2", &made.buffer, uint64_t{4 << 20}))
    return UNHANDLED_CUDA_ERROR;
  const std::lock_guard lock(mutex);
  *handle = reinterpret_cast<uint64_t>(&communicators);
  while (communicators.count(*handle)) *handle += 0x100;
  communicators[*handle] = made;
  return SUCCESS;
}

uint32_t create_all(uint64_t* handles, int32_t count) {
  uint32_t result = SUCCESS;
  for (int32_t i = 0; i < count && !result; i++) result = create(handles + i, i, count);
  return result;
}

// A part of a communicator: nobody tells this rank which place it has there, so it takes its key.
uint32_t split(int32_t color, int32_t key, uint64_t* handle) {
  *handle = 0;
  return color < 0 ? uint32_t{SUCCESS} : create(handle, key, 0);
}

uint32_t shrink(uint64_t parent, int32_t excluded, uint64_t* handle) {
  Communicator of;
  {
    const std::lock_guard lock(mutex);
    of = communicators[parent];
  }
  return create(handle, of.rank, of.ranks - excluded);
}

uint32_t destroy(uint64_t handle) {
  const std::lock_guard lock(mutex);
  auto at = communicators.find(handle);
  if (at == communicators.end()) return INVALID_ARGUMENT;
  bool freed = driver("cuMemFree_v2", at->second.buffer);
  communicators.erase(at);
  return freed ? SUCCESS : UNHANDLED_CUDA_ERROR;
}

uint32_t end_group() {
  if (groups == 0) return INVALID_ARGUMENT;
  if (--groups || queued.empty()) return SUCCESS;
  uint64_t stream = queued.back();
  queued.clear();
  return launch(stream);
}

bool is_point_to_point(std::string_view name) { return name == "ncclSend" || name == "ncclRecv"; }

bool is_collective(std::string_view name) {
  constexpr std::string_view TWIN = "Config";
  if (name.ends_with(TWIN)) name.remove_suffix(TWIN.size());
  constexpr std::string_view NAMES[] = {"ncclAllReduce", "ncclBroadcast",     "ncclReduce",
                                        "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll",
                                        "ncclGather",    "ncclScatter"};
  for (std::string_view one : NAMES)
    if (name == one) return true;
  return is_point_to_point(name);
}

template <typename Value>
Value* pointer(uint64_t word) {
  return reinterpret_cast<Value*>(word);
}
int32_t number(uint64_t word) { return static_cast<int32_t>(word); }

// What makes communicators, and says what they are. False: another function.
bool makes(std::string_view name, const std::vector<uint64_t>& words, uint32_t& result) {
  if (name == "ncclCommInitRank" || name == "ncclCommInitRankConfig")
    result = create(pointer<uint64_t>(words[0]), number(words[2]), number(words[1]));
  else if (name == "ncclCommInitRankScalable")
    result = create(pointer<uint64_t>(words[0]), number(words[2]), number(words[1]));
  else if (name == "ncclCommInitAll")
    result = create_all(pointer<uint64_t>(words[0]), number(words[1]));
  else if (name == "ncclCommSplit")
    result = split(number(words[1]), number(words[2]), pointer<uint64_t>(words[3]));
  else if (name == "ncclCommShrink")
    result = shrink(words[0], number(words[2]), pointer<uint64_t>(words[3]));
  else if (name == "ncclCommGrow")
    result = create(pointer<uint64_t>(words[4]), number(words[3]), number(words[1]));
  else
    return false;
  return true;
}

bool tells(std::string_view name, const std::vector<uint64_t>& words) {
  bool rank = name == "ncclCommUserRank", ranks = name == "ncclCommCount";
  if (!rank && !ranks) return false;
  const std::lock_guard lock(mutex);
  const Communicator& of = communicators[words[0]];
  *pointer<int32_t>(words[1]) = rank ? of.rank : of.ranks;
  return true;
}

uint32_t does(std::string_view name, const std::vector<uint64_t>& words) {
  uint32_t result = SUCCESS;
  if (makes(name, words, result)) return result;
  if (tells(name, words)) return SUCCESS;
  if (name == "ncclGroupStart") return groups++, SUCCESS;
  if (name == "ncclGroupEnd") return end_group();
  if (name == "ncclCommDestroy") return destroy(words[0]);
  if (name == "ncclCommFinalize") return IN_PROGRESS;
  if (name == "ncclBcast")
    return ncclBroadcast(words[0], words[0], words[1], static_cast<uint32_t>(words[2]),
                         static_cast<int32_t>(words[3]), reinterpret_cast<void*>(words[4]),
                         reinterpret_cast<void*>(words[5]));
  if (!is_collective(name)) return SUCCESS;
  if (is_point_to_point(name) && static_cast<int32_t>(words[3]) < 0) return INVALID_ARGUMENT;
  uint64_t stream = words[words.size() - (name.ends_with("Config") ? 2 : 1)];
  if (!groups) return launch(stream);
  queued.push_back(stream);
  return SUCCESS;
}

template <typename Values>
std::string list(const Values& values) {
  std::string text;
  for (uint64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

// What the call wrote: an array, or a value through each pointer.
std::vector<uint64_t> values_of(std::string_view name, const std::vector<uint64_t>& words,
                                const std::vector<Out>& outs) {
  std::vector<uint64_t> values;
  if (name == "ncclCommInitAll") {
    const auto* handles = pointer<uint64_t>(words[0]);
    values.assign(handles, handles + number(words[1]));
    return values;
  }
  for (const Out& out : outs) {
    values.push_back(0);
    if (out.to) std::memcpy(&values.back(), out.to, out.size);
  }
  return values;
}

void log(const std::string& line) {
  const char* folder = std::getenv("FAKE_CUDA_LOG");
  if (!folder) return;
  std::string path = std::string(folder) + "/nccl." + std::to_string(getpid()) + ".jsonl";
  int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::abort();
  close(file);
}

}  // namespace

std::string hex(const Bytes<128>& id) {
  std::string text;
  for (unsigned char byte : id.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

uint32_t called(const char* symbol, const std::vector<uint64_t>& words,
                const std::vector<Out>& outs, const std::string& id) {
  int nested = depth++;
  uint64_t begin = now();
  uint32_t result = does(symbol, words);
  depth--;
  log("{\"symbol\":\"" + std::string(symbol) + "\",\"tid\":" + std::to_string(gettid()) +
      ",\"args\":" + list(words) + ",\"ret\":" + std::to_string(result) +
      ",\"outs\":" + list(values_of(symbol, words, outs)) + ",\"id\":\"" + id +
      "\",\"nested\":" + std::to_string(nested) + ",\"begin_ns\":" + std::to_string(begin) +
      ",\"end_ns\":" + std::to_string(now()) + "}\n");
  return result;
}

}  // namespace fake_nccl
