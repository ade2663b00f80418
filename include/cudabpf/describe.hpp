// What a call's raw words mean: sizes, addresses, directions, grids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cudabpf/event.hpp"

namespace cudabpf {

// From what was recorded at entry.
Details describe_entry(const Function& function, std::span<const std::uint64_t> words,
                       std::span<const std::byte> structure);

// Adds what the call returned through its out-pointers (none if it failed). What a null pointer
// stands for is no value.
void describe_outs(const Function& function, std::span<const std::uint64_t> words,
                   std::span<const std::uint64_t> outs, Details& details);

// The value of an integer word in its argument's width; scalars of 32 bits and less come with
// undefined upper bits.
std::uint64_t value_of(Role role, std::uint64_t word);

}  // namespace cudabpf
