// What GPUs did in a sample program, and what is measured of it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "analyze/gaps/gpus_at_work.hpp"
#include "support/sample_program.hpp"
#include "support/trace_text.hpp"

namespace samples {

// What a GPU did, issued by the call `call`; 0: it is not known by which.
inline void ran(cudabpf::analyze::SampleProgram& program, std::uint64_t call, std::uint64_t ts,
                std::uint64_t ns, std::string_view what = "k", const std::string& more = {}) {
  bool copy = what.size() == 4 && what.substr(1, 2) == "to", fill = what == "set",
       graph = what == "graph";
  std::string name = copy            ? fmt::format(R"(,"direction":"{}")", what)
                     : fill || graph ? ""
                                     : fmt::format(R"(,"kernel":"{}")", what);
  std::string issuer =
      call ? fmt::format(R"("call":{})", call) : std::string(R"("unjoined":"no_call")");
  program.line(fmt::format(
      R"({{"type":"gpu","op":"{}","ts":{},"duration_us":{}.{:03},"pid":{},{},"stream":"0x0","queue":1,"device":0{}{}}})",
      copy            ? "copy"
      : fill || graph ? what
                      : "kernel",
      ts, ns / 1000, ns % 1000, program.pid, issuer, name, more));
}

struct Measured {
  explicit Measured(const cudabpf::analyze::SampleProgram& program,
                    cudabpf::analyze::Part part = {},
                    std::size_t kept = cudabpf::analyze::GpusAtWork::MAX_KEPT,
                    const cudabpf::analyze::TraceFacts& facts = {}, std::string_view windows = {})
      : times(parser.names(), 3, part, kept) {
    std::string header =
        fmt::format(R"({{"type":"trace","format":"cudabpf-trace","gpu_timing":"nodes"{}}})"
                    "\n",
                    windows);
    auto seen = each_line(parser, header + program.text(),
                          [&](const cudabpf::analyze::Line& line) { times.line(line); });
    times.finish(facts);
  }
  const cudabpf::analyze::GpusAtWork::OfGpu& gpu() const { return times.gpus().at(0); }
  std::uint64_t idle(cudabpf::analyze::IdleCause cause) const { return gpu().by_cause[cause]; }
  cudabpf::analyze::LineParser parser;
  cudabpf::analyze::GpusAtWork times;
};

}  // namespace samples
