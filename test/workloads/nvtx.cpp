#include "nvtx.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace workload::nvtx {

namespace {

constexpr unsigned kCopies = 2;
Copy copies[kCopies];

// What the tool's library has by this name; null: there is no tool, or it has none.
void* tools(const char* name) {
  const char* path = getenv("NVTX_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_LAZY) : nullptr;
  return library ? dlsym(library, name) : nullptr;
}

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
  using Table = const void* (*)(uint32_t);
  auto* initialize = reinterpret_cast<int (*)(Table)>(tools("InitializeInjectionNvtx2"));
  const Table table = this == &copies[0] ? Exported<0>::table : Exported<1>::table;
  const bool taken = initialize && initialize(table);
  for (Function* of : {core_, core2_})
    for (unsigned i = 0; i < kFunctions; ++i)
      if (!taken || of[i] == untouched) of[i] = nullptr;
}

// An extension loads NVTX itself first. Its untouched functions are null.
void Copy::load_extension() {
  std::call_once(loaded_, [this] { load(); });
  Segment segment{0, kFunctions, payload_};
  Extension extension;
  extension.segment = &segment;
  auto* initialize =
      reinterpret_cast<int (*)(Extension*)>(tools("InitializeInjectionNvtxExtension"));
  if (!initialize || !initialize(&extension))
    for (Function& function : payload_) function = nullptr;
}

Function Copy::function(Module module, unsigned place) {
  if (module == kPayload) {
    std::call_once(extension_loaded_, [this] { load_extension(); });
    return payload_[place];
  }
  std::call_once(loaded_, [this] { load(); });
  return (module == kCore ? core_ : core2_)[place];
}

}  // namespace workload::nvtx
