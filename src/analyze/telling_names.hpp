// Kernel names for a table, as short as still distinguishes them. The elementwise kernels of
// PyTorch are all called vectorized_elementwise_kernel, and differ in a template argument.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cudabpf::analyze {

// For each name, in order: the function's own name, and the template arguments in which it differs
// from others of that name.
std::vector<std::string> telling_names(const std::vector<std::string_view>& names);

}  // namespace cudabpf::analyze
