// Whether a file is a libcuda, and what is probed of it: which functions, and by which plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/function_numbers.hpp"
#include "cudabpf/abi.h"
#include "cudabpf/event.hpp"
#include "cudabpf/function_filter.hpp"
#include "util/elf/elf_contents.hpp"

namespace cudabpf {

// What is read of a library's file.
inline constexpr elf::Wanted LIBRARY_CONTENTS{.prefix = "cu"};

// Whether a function of this name is one of the driver's API: cuInit is, curl_easy_init is not.
bool is_driver_function(std::string_view name);

// Why a file is taken for no libcuda; empty: it is one. Any process may give any library the name
// libcuda.so.1, by a mount that it alone sees, and probes are there for all who use the file: so
// one that is found has to say itself that it is a libcuda. One that the user names need not.
std::string why_no_libcuda(const elf::Contents& contents, bool named);

// A place in a library's file, and what is recorded there.
struct PlannedProbe {
  std::uint64_t offset;
  abi::cb_plan plan;
  bool launch;  // of a kernel, whose name is read if it is new
};

// One probe for each address, of the functions that `filter` selects. `library` is told how many
// there are, or why there are none.
std::vector<PlannedProbe> plan_probes(const elf::Contents& contents, bool named,
                                      const FunctionFilter& filter, FunctionNumbers& numbers,
                                      Library& library);

}  // namespace cudabpf
