// Lines of a trace about what GPUs did.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

constexpr const char* GPUS_MEASURED = R"(,"gpu_timing":"nodes")";  // in the header
// A header with nothing else.
inline const std::string MEASURED = std::string(R"({"type":"trace")") + GPUS_MEASURED + "}\n";

// `more`: ",\"call\":9,…". Times are in ns.
inline std::string gpu_operation(const std::string& op, std::uint64_t ts, std::uint64_t ns,
                                 const std::string& more) {
  return fmt::format(
      R"({{"type":"gpu","op":"{}","ts":{},"duration_us":{}.{:03},"pid":1,"queue":1{}}})"
      "\n",
      op, ts, ns / 1000, ns % 1000, more);
}

inline std::string of_call(std::uint64_t call) { return fmt::format(R"(,"call":{})", call); }

inline std::string gpu_kernel(std::uint64_t ts, std::uint64_t ns, const std::string& name,
                              const std::string& more) {
  return gpu_operation(
      "kernel", ts, ns,
      fmt::format(R"(,"kernel":"{}","grid":[1,1,1],"block":[32,1,1],"shared":0{})", name, more));
}
