#include "nvtx.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace workload::nvtx {

namespace {

constexpr unsigned kCopies = 2;
Copy copies[kCopies];

struct Callbacks {
  size_t size;
  int (*functions)(int module, Function*** places, unsigned* count);
};

}  // namespace

// Each copy has an export table of its own, whose functions know no object.
template <int kNumber>
struct Exported {
  static int functions(int module, Function*** places, unsigned* count) {
    Copy& of = copies[kNumber];
    if (module != kCore && module != kCore2) return 0;
    *places = module == kCore ? of.core_places_ : of.core2_places_;
    *count = Copy::kFunctions;
    return 1;
  }
  static const void* table(uint32_t which) {
    static const Callbacks callbacks = {sizeof(Callbacks), functions};
    return which == 1 ? &callbacks : nullptr;
  }
};

Copy& copy(unsigned number) { return copies[number % kCopies]; }

// A function that has not been replaced stands there until all have had their chance, as in NVTX;
// it must never be called by a tool.
void Copy::load() {
  const Function untouched = [] { abort(); };
  for (unsigned i = 1; i < kFunctions; ++i) {
    core_[i] = core2_[i] = untouched;
    core_places_[i] = &core_[i];
    core2_places_[i] = &core2_[i];
  }
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_LAZY) : nullptr;
  using Table = const void* (*)(uint32_t);
  auto* initialize =
      library ? reinterpret_cast<int (*)(Table)>(dlsym(library, "InitializeInjectionNvtx2"))
              : nullptr;
  const Table table = this == &copies[0] ? Exported<0>::table : Exported<1>::table;
  const bool taken = initialize && initialize(table);
  for (Function* of : {core_, core2_})
    for (unsigned i = 0; i < kFunctions; ++i)
      if (!taken || of[i] == untouched) of[i] = nullptr;
}

Function Copy::function(Module module, unsigned place) {
  std::call_once(loaded_, [this] { load(); });
  return (module == kCore ? core_ : core2_)[place];
}

}  // namespace workload::nvtx
