// What weighs at Python's stacks: of each stack and what was called or ran for it, its time or
// bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/python_places.hpp"
#include "analyze/short_names.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

enum class StackMeasure : std::uint8_t {
  host,       // nanoseconds in calls, without those inside other calls
  gpu,        // nanoseconds for which GPUs worked
  copied,     // bytes that were copied and filled
  allocated,  // bytes, freed or not
};
inline constexpr std::array<std::string_view, 4> STACK_MEASURES = {"host", "gpu", "bytes",
                                                                   "allocated"};

class StackWeights : public Analysis {
 public:
  struct Weighed {
    const PythonPlace* place = nullptr;  // null: no stack is known
    std::string what;                    // a call or a kernel
    std::uint64_t weight = 0;
  };

  // `only`: what else weighs is not summed.
  explicit StackWeights(Names& names, std::optional<StackMeasure> only = {})
      : names_(names), kernels_(names), only_(only) {}

  void line(const Line& line) override;
  void finish(const TraceFacts&) override { kernels_.settle(); }

  // In no order.
  std::vector<Weighed> of(StackMeasure measure) const;

 private:
  struct Key {
    const PythonPlace* place = nullptr;
    std::uint32_t what = 0;  // a name
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return hash_of(reinterpret_cast<std::uintptr_t>(key.place), key.what);
    }
  };

  void call(const Line& line);
  void add(StackMeasure measure, const Line& line, Name what, std::uint64_t weight);

  const Names& names_;
  ShortNames kernels_;
  std::optional<StackMeasure> only_;
  std::array<HashMap<Key, std::uint64_t, Hash>, STACK_MEASURES.size()> weights_;
};

}  // namespace cudabpf::analyze
