// The tables of statements that are driver calls: each statement's name, and how it makes the call.
#pragma once

#include <functional>

#include "script.hpp"

namespace workload {

using D = const Driver&;
using A = const Arguments&;
using Make = std::function<Status(D, A)>;

const std::map<std::string, Make>& context_calls();
const std::map<std::string, Make>& copy_calls();
const std::map<std::string, Make>& graph_calls();
const std::map<std::string, Make>& launch_calls();
const std::map<std::string, Make>& memory_calls();

}  // namespace workload
