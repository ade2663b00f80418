// Texts that lines repeat, each kept once: whether two are the same is whether two numbers are.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace cudabpf::analyze {

struct Name {
  std::uint32_t id = 0;  // 0: none
  explicit operator bool() const { return id != 0; }
  bool operator==(const Name&) const = default;
};

class Names {
 public:
  // So many that no real trace has them: what comes after is all called the same, so that a trace
  // made of different names does not take all memory.
  static constexpr std::uint32_t LIMIT = 1 << 20;
  static constexpr std::size_t TEXT_LIMIT = std::size_t{128} << 20;
  // A kernel's: 4 KiB of a mangled name can become so many.
  static constexpr std::size_t LONGEST = std::size_t{64} << 10;
  static constexpr Name NOT_KEPT = {1};

  Names();

  Name add(std::string_view text);
  std::string_view text(Name name) const { return texts_[name.id]; }
  // How many numbers there are: every name's is below.
  std::size_t size() const { return texts_.size(); }

 private:
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void grow();
  std::string_view keep(std::string_view text);

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t free_ = 0, kept_ = 0;
  Name last_;
};

}  // namespace cudabpf::analyze
