// Python's stacks as programs that draw flame graphs take them: a line each, from the outermost
// function inwards, and what it weighs. The last part is what was called, or the kernel that ran.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analyze/analysis.hpp"
#include "analyze/export/byte_stream.hpp"
#include "analyze/short_names.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class FoldedStacks : public Analysis {
 public:
  enum class Weight : std::uint8_t {
    host,   // nanoseconds in calls, without those inside other calls
    gpu,    // nanoseconds for which GPUs worked
    bytes,  // that were copied and filled
  };
  static Weight weight(std::string_view name);

  FoldedStacks(Names& names, ByteStream& out, Weight weight)
      : names_(names), out_(out), weight_(weight), kernels_(names) {}

  void line(const Line& line) override;
  void finish(const TraceFacts&) override;

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

  void add(const Line& line, Name what, std::uint64_t weight);
  std::string text_of(const PythonPlace* place) const;

  const Names& names_;
  ByteStream& out_;
  Weight weight_;
  ShortNames kernels_;
  HashMap<Key, std::uint64_t, Hash> weights_;
};

}  // namespace cudabpf::analyze
