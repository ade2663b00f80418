// What a call would have a node do, from the structs that describe nodes.
#pragma once

#include "compute/kernels.hpp"
#include "graph_nodes.hpp"
#include "types.hpp"

namespace fake {

// What these copies do; nothing for arrays, which have no memory.
Action action_of(const Memcpy2D& copy);
Action action_of(const Memcpy3D& copy);

// What a node that does it was given. Hold state_mutex for a launch: its kernel is looked up.
std::shared_ptr<const Given> given(const Memcpy2D& copy);
std::shared_ptr<const Given> given(const Memcpy3D& copy);
std::shared_ptr<const Given> given(const MemsetNodeParams& set);
std::shared_ptr<const Given> given(const Launch& launch);

// Each returns what is wrong with it. Hold state_mutex: a kernel's name is looked up.
Status read_kernel(const void* parameters, Work& work);
Status read_copy(const void* copy, Work& work);
Status read_fill(const void* fill, Work& work);
Status read_host(const void* parameters, Work& work);
Status read_node(const void* parameters, Work& work);  // a CUgraphNodeParams

}  // namespace fake
