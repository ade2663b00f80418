// cuGetProcAddress: finds the exported entry for an API name, a CUDA version and a stream mode.
#include <cstring>

#include "behaviour.hpp"
#include "observe.hpp"

namespace fake {
namespace {

constexpr uint64_t kPerThreadStream = 2;
enum class Found : int32_t { yes = 0, no_such_symbol = 1, version_too_old = 2 };

struct Search {
  const Symbol* best = nullptr;
  Found found = Found::no_such_symbol;
};

// The newest revision that the version knows; its per-thread form if that is wanted and exists.
Search search(const char* api, int version, bool per_thread) {
  Search result;
  for (int i = 0; i < kSymbolCount; ++i) {
    const Symbol& symbol = kSymbols[i];
    if (strcmp(symbol.api, api) != 0 || (symbol.per_thread && !per_thread)) continue;
    if (symbol.since > version) {
      if (!result.best) result.found = Found::version_too_old;
      continue;
    }
    const bool better = !result.best || symbol.since > result.best->since ||
                        (symbol.since == result.best->since && symbol.per_thread);
    if (better) result = {&symbol, Found::yes};
  }
  return result;
}

}  // namespace

Status cuGetProcAddress(const char* symbol, void* entry, int32_t version, uint64_t flags,
                        void* found) {
  if (!symbol || !entry) return kInvalidValue;
  const Search result = search(symbol, version, (flags & kPerThreadStream) != 0);
  *static_cast<void**>(entry) = result.best ? result.best->entry : nullptr;
  if (found) *static_cast<Found*>(found) = result.found;
  return result.best ? kSuccess : kNotFound;
}

Status cuGetProcAddress(const char* symbol, void* entry, int32_t version, uint64_t flags) {
  return cuGetProcAddress(symbol, entry, version, flags, nullptr);
}

}  // namespace fake
