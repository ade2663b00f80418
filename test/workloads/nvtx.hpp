// A program's copy of NVTX 3, as NVIDIA's headers compile it into each library that names ranges:
// at the first call of any function it loads what NVTX_INJECTION64_PATH names, which replaces the
// functions that it wants to have. What is not replaced does nothing.
#pragma once

#include <cstdint>
#include <mutex>

namespace workload::nvtx {

using Function = void (*)();
enum Module : int { kCore = 1, kCore2 = 5, kPayload = 100 };  // the last is an extension

// nvtxEventAttributes_v2
struct Event {
  uint16_t version = 3;
  uint16_t size = 48;
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 0;
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = 0;
  const void* message = nullptr;
};

// The table that a tool is given, as far as it is used here.
struct Callbacks {
  size_t size;
  int (*functions)(int module, Function*** places, unsigned* count);
};

// nvtxExtModuleInfo_t, by which an extension gives its functions to a tool.
struct Segment {
  size_t number, count;
  Function* functions;
};
struct Extension {
  uint16_t version = 3, size = 40, module = 2, compatible = 0x103;
  size_t segments = 1;
  Segment* segment = nullptr;
  void* export_function = nullptr;
  const void* more = nullptr;
};

class Copy {
 public:
  constexpr Copy() = default;

  // The function at this place of a module; null: nobody has it.
  Function function(Module module, unsigned place);
  // As that function, if somebody has it; else `otherwise`.
  template <typename Result, typename... Arguments>
  Result call(Module module, unsigned place, Result otherwise, Arguments... arguments) {
    const Function found = function(module, place);
    if (!found) return otherwise;
    return reinterpret_cast<Result (*)(Arguments...)>(found)(arguments...);
  }
  template <typename... Arguments>
  void tell(Module module, unsigned place, Arguments... arguments) {
    if (const Function found = function(module, place))
      reinterpret_cast<void (*)(Arguments...)>(found)(arguments...);
  }

 private:
  static constexpr unsigned kFunctions = 16;
  void load();
  void load_extension();
  template <int kNumber>
  friend struct Exported;

  std::once_flag loaded_, extension_loaded_;
  Function core_[kFunctions] = {}, core2_[kFunctions] = {}, payload_[kFunctions] = {};
  Function* core_places_[kFunctions] = {};
  Function* core2_places_[kFunctions] = {};
};

// The copies of two libraries of one process.
Copy& copy(unsigned number);

}  // namespace workload::nvtx
