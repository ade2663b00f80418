// Lines of a trace about graphs.
#pragma once

#include <fmt/format.h>

#include <string>

// What a graph holds: `nodes` are the entries of its list.
inline std::string content_line(std::uint64_t number, std::uint64_t nodes, std::uint64_t kernels,
                                const std::string& list, const std::string& more = "") {
  return fmt::format(
      R"({{"type":"graph","op":"content","ts":5,"pid":1,"graph":{},"nodes":{},"kernels":{},"content":[{}]{}}})"
      "\n",
      number, nodes, kernels, list, more);
}

inline std::string kernel_nodes(const std::string& name, const std::string& count,
                                const std::string& more = "", int grid = 1) {
  return fmt::format(
      R"({{"op":"kernel","kernel":"{}","grid":[{},1,1],"block":[32,1,1],"shared":0,"count":{}{}}})",
      name, grid, count, more);
}

// `more`: ",\"graph\":1,…", or why it is not known.
inline std::string graph_launch(int id, int ts, const std::string& more, int ret = 0) {
  return fmt::format(
      R"({{"id":{},"type":"graph","op":"launch","name":"cuGraphLaunch","ts":{},"duration_us":1.000,"pid":1,"tid":1,"ret":{},"stream":"0x7"{}}})"
      "\n",
      id, ts, ret, more);
}

inline std::string of_graph(std::uint64_t number, int nodes = 1, int kernels = 1) {
  return fmt::format(R"(,"graph":{},"nodes":{},"kernels":{})", number, nodes, kernels);
}

inline std::string kernel_launch(int id, int ts, const std::string& name,
                                 const std::string& more = "", int ret = 0) {
  return fmt::format(
      R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},"duration_us":1.000,"pid":1,"tid":1,"ret":{},"stream":"0x7","async":true,"kernel":"{}","grid":[1,1,1],"block":[32,1,1],"shared":0{}}})"
      "\n",
      id, ts, ret, name, more);
}
