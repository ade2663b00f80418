// What a function's probes record, in the form that the kernel side reads.
#pragma once

#include <cstdint>

#include "cudabpf/abi.h"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

// The plan that the probes of `function` carry. `id` is its index in the probe set.
abi::cb_plan plan_for(const Function& function, std::uint16_t id);
// The plan for a symbol that the table does not know: its raw register arguments.
abi::cb_plan plan_for_unknown(std::uint16_t id);

}  // namespace cudabpf
