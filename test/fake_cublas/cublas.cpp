#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "common.hpp"

namespace fake_cublas {
namespace {

std::mutex mutex;
struct Set {
  uint64_t stream = 0;
  uint32_t math = 0;
};
std::map<uint64_t, Set> handles;

uint64_t given(const Words& words, std::string_view name, uint64_t otherwise) {
  auto at = words.find(name);
  return at == words.end() ? otherwise : at->second;
}

uint32_t create(const Words& words) {
  const std::lock_guard lock(mutex);
  uint64_t handle = reinterpret_cast<uint64_t>(&handles);
  while (handles.count(handle)) handle += 0x100;
  handles[handle] = {};
  *reinterpret_cast<uint64_t*>(words.at("blas")) = handle;
  return SUCCESS;
}

// Half-precision products are done by cuBLASLt, if the program has loaded it: a call in a call.
uint32_t by_lt(const Words& words, uint64_t stream) {
  using Do =
      uint32_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                   uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  using Describe = void (*)(uint64_t, uint64_t, uint64_t, void*, void*);
  auto multiply = reinterpret_cast<Do>(dlsym(RTLD_DEFAULT, "cublasLtMatmul"));
  auto describe = reinterpret_cast<Describe>(dlsym(RTLD_DEFAULT, "fake_cublaslt_describe"));
  if (!multiply || !describe) return launch(words.at("m"), words.at("n"), 1, stream);
  alignas(8) unsigned char product[256], matrices[3][64];
  describe(words.at("m"), words.at("n"), words.at("k"), product, matrices);
  auto at = [](void* where) { return reinterpret_cast<uint64_t>(where); };
  return multiply(1, at(product), 0, 1, at(matrices[0]), 2, at(matrices[1]), 0, 3, at(matrices[2]),
                  3, at(matrices[2]), 0, 0, 0, stream);
}

}  // namespace

uint32_t does(std::string_view symbol, const Words& words) {
  if (symbol == "cublasCreate_v2") return create(words);
  uint64_t stream = 0;
  {
    const std::lock_guard lock(mutex);
    auto handle = handles.find(words.at("blas"));
    if (handle == handles.end()) return INVALID_VALUE;
    if (symbol.starts_with("cublasSetStream")) handle->second.stream = words.at("stream");
    if (symbol == "cublasSetMathMode")
      handle->second.math = static_cast<uint32_t>(words.at("mode"));
    stream = handle->second.stream;
    if (symbol == "cublasDestroy_v2") handles.erase(handle);
  }
  if (!words.count("m")) return SUCCESS;
  if (static_cast<int32_t>(words.at("m")) < 0) return INVALID_VALUE;
  if (symbol == "cublasHgemm") return by_lt(words, stream);
  return launch(words.at("m"), words.at("n"), given(words, "batchCount", 1), stream);
}

namespace {

uint32_t ask(uint64_t handle, Set* set) {
  const std::lock_guard lock(mutex);
  auto at = handles.find(handle);
  if (at == handles.end()) return INVALID_VALUE;
  *set = at->second;
  return SUCCESS;
}

}  // namespace
}  // namespace fake_cublas

// Not in the table: no tracer records them.
#define EXPORTED extern "C" __attribute__((visibility("default"), noinline))

EXPORTED uint32_t cublasGetStream_v2(uint64_t handle, uint64_t* stream) {
  fake_cublas::Set set;
  uint32_t result = fake_cublas::ask(handle, &set);
  if (result == fake_cublas::SUCCESS) *stream = set.stream;
  return result;
}

EXPORTED uint32_t cublasGetMathMode(uint64_t handle, uint32_t* mode) {
  fake_cublas::Set set;
  uint32_t result = fake_cublas::ask(handle, &set);
  if (result == fake_cublas::SUCCESS) *mode = set.math;
  return result;
}
