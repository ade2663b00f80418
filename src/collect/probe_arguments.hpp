// Where the arguments of a USDT probe are, by the text that the compiler has left of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "cudabpf/abi.h"
#include "cudabpf/static_probes.h"
#include "util/elf/elf.hpp"

namespace cudabpf {

// A row for each of `count` arguments, for the program in the kernel: "8@%rdi -4@-20(%rbp) 8@$1".
// Nothing: there are more or fewer of them, or what is said of one is not understood, as an address
// relative to the code's, or a vector register.
std::optional<std::vector<abi::cb_read>> reads_of_probe(elf::Machine machine,
                                                        std::string_view arguments,
                                                        std::size_t count);

}  // namespace cudabpf
