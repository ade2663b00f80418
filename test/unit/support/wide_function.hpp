// A function of no library, of which all is read that rows can say: more words than registers and a
// plain record hold, two structs, and one behind a pointer in the first.
#pragma once

#include <array>
#include <cstdint>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

inline constexpr std::size_t WIDE_WORDS = 20;

// The structs that it is given, of the sizes of the table's.
struct WideOuter {
  std::array<std::uint64_t, 3> words;
  const std::uint64_t* inner;
};
using WideInner = std::array<std::uint64_t, 5>;
using WideConfig = std::array<std::uint64_t, 7>;

inline Function wide_function() {
  static constexpr auto ARGUMENTS = [] {
    std::array<Argument, WIDE_WORDS + 1> all{};
    all[0] = {"made", Role::handle, true, Struct::none, 0};
    all[1] = {"outer", Role::in_struct, false, Struct::alloc_prop, 1};
    all[2] = {"inner", Role::in_struct, false, Struct::memset_node, -1, 1, 24};
    for (std::size_t i = 3; i < WIDE_WORDS; i++)
      all[i] = {"word", Role::u64, false, Struct::none, static_cast<std::int8_t>(i - 1)};
    all[WIDE_WORDS] = {"config", Role::in_struct, false, Struct::launch_config, WIDE_WORDS - 1};
    return all;
  }();
  Function function = unknown_function(ApiId::cuda, "wide");
  function.arguments = ARGUMENTS;
  return function;
}

}  // namespace cudabpf
