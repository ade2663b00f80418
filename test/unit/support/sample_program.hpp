// The calls of a program that exists only as lines of a trace, in time order.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "analyzing.hpp"

namespace cudabpf::analyze {

class SampleProgram {
 public:
  std::uint32_t pid = 7, tid = 7;
  std::uint64_t now = 1000;  // ns
  bool capturing = false;    // what is launched goes into a graph

  void pause(std::uint64_t ns) { now += ns; }

  void call(std::string_view type, std::string_view op, std::string_view name, std::uint64_t ns,
            const std::string& more = {}) {
    text_ += fmt::format(
        R"({{"id":{},"type":"{}","op":"{}","name":"{}","ts":{},"duration_us":{}.{:03},"pid":{},"tid":{},"ret":0{}}})"
        "\n",
        ++calls_, type, op, name, now, ns / 1000, ns % 1000, pid, tid, more);
    now += ns;
  }
  void init(std::uint64_t ns) { call("init", "init", "cuInit", ns); }
  void alloc(std::uint64_t ns) {
    call("memory", "alloc", "cuMemAlloc", ns, fmt::format(R"(,"size":4096,"ptr":"{:#x}")", now));
  }
  void launch(std::string_view kernel, std::uint64_t ns = 10, std::string_view stream = "0x0") {
    call("kernel", "launch", "cuLaunchKernel", ns,
         fmt::format(R"(,"stream":"{}","async":true{},"kernel":"{}")", stream,
                     capturing ? R"(,"captured":true)" : "", kernel));
  }
  void wait(std::uint64_t ns = 10, std::string_view stream = "0x0") {
    call("sync", "stream", "cuStreamSynchronize", ns, fmt::format(R"(,"stream":"{}")", stream));
  }
  // A graph of this many kernels of that name.
  void graph_content(int number, int kernels, std::string_view kernel) {
    line(fmt::format(
        R"({{"type":"graph","op":"content","ts":{},"pid":{},"graph":{},"nodes":{},"kernels":{},"content":[{{"op":"kernel","kernel":"{}","count":{}}}]}})",
        now, pid, number, kernels, kernels, kernel, kernels));
  }
  // `content`: which graph, or why that is not known.
  void launch_graph(std::string_view content, std::uint64_t ns = 10) {
    call("graph", "launch", "cuGraphLaunch", ns,
         fmt::format(R"(,"stream":"0x0","async":true,{})", content));
  }
  void load_code(std::uint64_t ns) { call("module", "load", "cuLibraryLoadData", ns); }
  void to_device(std::uint64_t size, std::uint64_t ns) {
    call("transfer", "HtoD", "cuMemcpyHtoD", ns, fmt::format(R"(,"size":{})", size));
  }
  void to_host(std::uint64_t size, std::uint64_t ns) {
    call("transfer", "DtoH", "cuMemcpyDtoH", ns, fmt::format(R"(,"size":{})", size));
  }
  void process(std::string_view op) {
    text_ += fmt::format(R"({{"type":"process","op":"{}","ts":{},"pid":{},"comm":"sample"}})"
                         "\n",
                         op, now, pid);
  }
  void line(const std::string& text) { text_ += text + "\n"; }

  std::uint64_t calls() const { return calls_; }
  const std::string& text() const { return text_; }

  void show_to(LineParser& parser, Analysis& analysis) const {
    auto seen = each_line(parser, text_, [&](const Line& line) { analysis.line(line); });
    analysis.finish({});
  }

 private:
  std::string text_;
  std::uint64_t calls_ = 0;
};

}  // namespace cudabpf::analyze
