// What a trace lacks although the user asked for it, and why: GPU times that were not reported,
// lines of Python, functions that could not be patched inside a process. Every answer reports it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/header.hpp"
#include "trace/read/line.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

class NotRecorded {
 public:
  // Traces are untrusted: more are only counted, and longer texts are cut.
  static constexpr std::size_t MAX_REASONS = 8, MAX_FUNCTIONS = 64, MAX_TEXT = 400;

  void header(const TraceHeader& header);  // of the first file
  void library(const Line& line);
  void gpu_times(const Line& line);
  void gpu_window(const Line& line);
  void python(const Line& line);

  // What the functions do that were not recorded: "launches", as CountedAs has it.
  std::span<const std::string_view> kinds() const { return kinds_; }

  // `calls`: how many the trace has.
  bool any(std::uint64_t calls) const;
  // The first reason; empty: there is none.
  std::string why_no_gpu_times(std::uint64_t calls) const;
  nlohmann::ordered_json json(std::uint64_t calls) const;
  void add_to(Page& page, std::uint64_t calls) const;

 private:
  struct Processes {
    std::uint32_t first = 0;  // pid
    std::uint64_t count = 0;
  };
  using Reasons = std::map<std::string, Processes>;
  static void note(const Line& line, Reasons& reasons);
  static nlohmann::ordered_json list_of(const Reasons& reasons);
  static void add_to(Page& page, const Reasons& reasons);
  // GPU times were wanted in windows, and the trace ended before one.
  std::string no_window() const;
  bool has_met_no_window() const { return period_ns_ && reported_gpus_ && !windows_; }
  // --gpu was given, and no process has reported anything.
  bool is_silent(std::uint64_t calls) const;

  bool gpu_times_wanted_ = false;
  bool reported_gpus_ = false;
  std::uint64_t window_ns_ = 0, period_ns_ = 0;  // of GPU times; 0: always
  std::uint64_t windows_ = 0, in_windows_ns_ = 0;
  Reasons no_gpu_times_, no_python_;
  std::vector<std::string> functions_;  // "cuLaunchKernel (why)"
  std::uint64_t more_functions_ = 0;
  std::vector<std::string_view> kinds_;
};

}  // namespace cudabpf::analyze
