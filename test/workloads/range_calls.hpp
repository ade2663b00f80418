// Statements by which a script names what it does, as programs do by NVTX.
#pragma once

#include "script.hpp"

namespace workload {

// False: there is no such statement.
bool name_range(const Arguments& arguments);

}  // namespace workload
