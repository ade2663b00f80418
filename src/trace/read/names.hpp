// Texts that lines repeat, each kept once: two are the same if their numbers are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf::analyze {

struct Name {
  std::uint32_t id = 0;  // 0: none
  explicit operator bool() const { return id != 0; }
  bool operator==(const Name&) const = default;
};

// The words of the function table have the same numbers in every trace, so a line's type and op can
// be compared with `Type` and `Op` directly. A type and an op that are spelled alike are one name.
struct TableWords {
  static constexpr std::uint32_t FIRST = 2;  // after Names::NOT_KEPT
  std::array<std::uint32_t, std::size(TYPE_NAMES)> types{};
  std::array<std::uint32_t, std::size(OP_NAMES)> ops{};
};
constexpr TableWords TABLE_WORDS = [] {
  TableWords words;
  std::uint32_t next = TableWords::FIRST;
  for (std::size_t i = 1; i < words.types.size(); i++) words.types[i] = next++;
  for (std::size_t i = 1; i < words.ops.size(); i++) {
    const auto* type = std::find(std::begin(TYPE_NAMES), std::end(TYPE_NAMES), OP_NAMES[i]);
    bool also = type != std::end(TYPE_NAMES);
    words.ops[i] = also ? words.types[static_cast<std::size_t>(type - TYPE_NAMES)] : next++;
  }
  return words;
}();
constexpr bool operator==(Name name, Type type) {
  return name.id == TABLE_WORDS.types[static_cast<std::size_t>(type)];
}
constexpr bool operator==(Name name, Op op) {
  return name.id == TABLE_WORDS.ops[static_cast<std::size_t>(op)];
}

// A call's meaning, by these words; a type or an op that is not the table's means nothing.
const Meaning& meaning_of_call(Name type, Name op);

class Names {
 public:
  // More than any real trace has: further names all become the same one, so that a trace made of
  // different names does not take all memory.
  static constexpr std::uint32_t LIMIT = 1 << 20;
  static constexpr std::size_t TEXT_LIMIT = std::size_t{128} << 20;
  // For a kernel's name: 4 KiB of a mangled name can become this many.
  static constexpr std::size_t LONGEST = std::size_t{64} << 10;
  static constexpr Name NOT_KEPT = {1};

  Names();

  Name add(std::string_view text);
  // Another thread may call this for a name that it was given, while names are added.
  std::string_view text(Name name) const { return texts_[name.id / PAGE][name.id % PAGE]; }
  // How many numbers there are: every name's is below this.
  std::size_t size() const { return size_; }

 private:
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();
  std::string_view keep(std::string_view text);
  Name next(std::string_view kept);

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = 0;
  };
  static constexpr std::size_t PAGE = 1024;
  std::vector<Slot> slots_;
  // By number, in pages that stay where they are.
  std::array<std::unique_ptr<std::string_view[]>, LIMIT / PAGE> texts_;
  std::size_t size_ = 0;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t free_ = 0, kept_ = 0;
  Name last_;
};

}  // namespace cudabpf::analyze
