#include <dlfcn.h>

#include <algorithm>
#include <mutex>

#include "common.hpp"

namespace fake_cublas {
namespace {

std::mutex mutex;
std::map<uint64_t, uint64_t> streams;  // by handle

uint64_t given(const Words& words, std::string_view name, uint64_t otherwise) {
  auto at = words.find(name);
  return at == words.end() ? otherwise : at->second;
}

uint32_t create(const Words& words) {
  const std::lock_guard lock(mutex);
  uint64_t handle = reinterpret_cast<uint64_t>(&streams);
  while (streams.count(handle)) handle += 0x100;
  streams[handle] = 0;
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
    auto handle = streams.find(words.at("blas"));
    if (handle == streams.end()) return INVALID_VALUE;
    if (symbol.starts_with("cublasSetStream")) handle->second = words.at("stream");
    if (symbol == "cublasDestroy_v2")
      streams.erase(handle);
    else
      stream = handle->second;
  }
  if (!words.count("m")) return SUCCESS;
  if (static_cast<int32_t>(words.at("m")) < 0) return INVALID_VALUE;
  if (symbol == "cublasHgemm") return by_lt(words, stream);
  return launch(words.at("m"), words.at("n"), given(words, "batchCount", 1), stream);
}

}  // namespace fake_cublas
