// What a call's raw words mean: sizes, addresses, directions, grids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

// From what was recorded at entry.
Details describe_entry(const Function& function, std::span<const std::uint64_t> words,
                       std::span<const std::byte> structure);

// The ordinals in the array of devices that the call was given, as many as were read.
std::vector<std::int32_t> listed_devices(const Function& function,
                                         std::span<const std::byte> structure);

// Adds what the call returned through its out-pointers (nothing if it failed). A null out-pointer
// yields no value.
void describe_outs(const Function& function, std::span<const std::uint64_t> words,
                   std::span<const std::uint64_t> outs, Details& details);

// An integer word's value, cut to its argument's width: the upper bits of scalars of 32 bits and
// less are undefined.
std::uint64_t value_of(Role role, std::uint64_t word);

// The first argument of this kind that the caller passes, by its value; nothing if the function has
// none or it was not recorded.
std::optional<std::uint64_t> argument_of(const Function& function,
                                         std::span<const std::uint64_t> words, Role role);

// The same number for the same words, in every trace of every host: the ranks of a communicator are
// recognised by it.
std::uint64_t identity_of(std::span<const std::uint64_t> words);

}  // namespace cudabpf
