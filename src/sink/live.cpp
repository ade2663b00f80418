#include "sink/live.hpp"

#include <fmt/format.h>

#include <cstring>

#include "trace/write/event_lines.hpp"
#include "util/console/terminal.hpp"
#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t LINES_A_FLUSH = 200;

std::string shape(const Dim3& of) {
  if (of.z > 1) return fmt::format("{}x{}x{}", of.x, of.y, of.z);
  if (of.y > 1) return fmt::format("{}x{}", of.x, of.y);
  return fmt::to_string(of.x);
}

// How an operation ended, and how long it took.
std::string ending(bool has_return, bool unfinished, std::uint64_t duration) {
  if (has_return) return "  " + human_time(duration);
  return unfinished ? "  unfinished" : "";
}

}  // namespace

std::string LiveSink::name_of(std::uint32_t pid) const {
  auto name = names_.find(pid);
  return fmt::format("{}/{}", name == names_.end() ? "?" : name->second, pid);
}

void LiveSink::add(std::uint64_t ts, std::string_view process, std::string_view what) {
  if (lines_ == LINES_A_FLUSH) {
    left_out_++;
    return;
  }
  lines_++;
  pending_ += fmt::format("{:>5}.{:06}  {:<22}  {}\n", ts / 1'000'000'000, ts / 1000 % 1'000'000,
                          printable(process), printable(what));
}

void LiveSink::call(const Call& call) {
  std::string what(call.function->name);
  if (call.kernel) what += fmt::format(" {}", call.kernel->short_name);
  if (call.details.has_dims)
    what += fmt::format(" <<<{}, {}>>>", shape(call.details.grid), shape(call.details.block));
  if (call.graph)
    what += fmt::format(" graph {}: {}", call.graph->number,
                        count_of(call.graph->kernels, "kernel", "kernels"));
  if (call.captured) what += " captured";
  if (call.details.size) what += fmt::format(" {}", human_bytes(*call.details.size));
  if (call.has_text && !call.kernel) what += fmt::format(" \"{}\"", call.text.substr(0, 60));
  what += ending(call.has_return, call.unfinished, call.duration);
  if (call.ioctls)
    what += fmt::format(", {} ioctl{} {}", call.ioctls, call.ioctls == 1 ? "" : "s",
                        human_time(call.ioctl_time));
  if (call.has_return && call.result != 0) {
    std::string_view error = call.function->result_name(call.result);
    what += "  ";
    what += error.empty() ? fmt::to_string(call.result) : std::string(error);
  }
  add(call.ts, name_of(call.pid), what);
}

void LiveSink::driver_call(const DriverCall& call) {
  if (is_interrupt(call.op))
    return add(call.ts, fmt::format("cpu {}", call.cpu),
               fmt::format("{}  {}", to_string(call.op), human_time(call.duration)));
  const IoctlDetails& details = call.details;
  std::string what = call.call ? "  " : "";  // inside a CUDA call
  what += call.op == DriverCall::Op::ioctl ? name_or_number(details.name, details.number)
                                           : std::string(to_string(call.op));
  if (details.control)
    what += fmt::format(" {}", name_or_number(details.control_name, *details.control));
  if (details.klass) what += fmt::format(" {}", name_or_number(details.class_name, *details.klass));
  if (details.size) what += fmt::format(" {}", human_bytes(*details.size));
  what += " on " + call.device + ending(call.has_return, call.unfinished, call.duration);
  if (const char* error = call.has_return && call.error() ? strerrordesc_np(call.error()) : nullptr)
    what += fmt::format("  {}", error);
  if (call.status && *call.status)
    what += fmt::format("  {}", name_or_number(driver_status_name(*call.status), *call.status));
  add(call.ts, name_of(call.pid), what);
}

void LiveSink::gpu_error(const GpuError& error) {
  add(error.ts, error.pid ? fmt::format("{}/{}", error.comm, *error.pid) : "",
      fmt::format("Xid {} on {}: {} ({})", error.xid, error.device, error.meaning, error.message));
}

void LiveSink::process(const Process& process) {
  constexpr std::size_t MAX_NAMES = 1 << 16;  // reached only if many exits were lost
  if (names_.size() >= MAX_NAMES) names_.clear();
  names_[process.pid] = process.comm;
  std::string program = (process.cmdline.empty() ? process.comm : process.cmdline).substr(0, 80);
  std::string what = process.op == Process::Op::start  ? "is traced: " + program
                     : process.op == Process::Op::fork ? fmt::format("made by {}", process.ppid)
                     : process.op == Process::Op::exec ? "runs " + program
                     : process.signal    ? fmt::format("killed by signal {}", *process.signal)
                     : process.exit_code ? fmt::format("exits with {}", *process.exit_code)
                                         : "exits";
  add(process.ts, name_of(process.pid), what);
  if (process.op == Process::Op::exit) names_.erase(process.pid);
}

void LiveSink::library(const Library& library) {
  add(library.ts, "",
      library.error.empty() ? "traces " + library.path
                            : library.path + " is not traced: " + library.error);
}

void LiveSink::lost(const LossEvent& loss) {
  add(loss.until, "",
      fmt::format("LOST {} {}", loss.count ? with_commas(*loss.count) : "an unknown number",
                  info(loss.reason).name));
}

void LiveSink::hand_over(bool last) {
  auto more = [](std::size_t lines) {
    return lines ? fmt::format("               … {} more\n", with_commas(lines)) : std::string();
  };
  std::string text = more(left_out_before_) + pending_ + more(left_out_);
  if (text.empty() || write_(text, last))
    left_out_before_ = 0;
  else
    left_out_before_ += lines_ + left_out_;
  pending_.clear();
  lines_ = left_out_ = 0;
}

}  // namespace cudabpf
