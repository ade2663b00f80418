#include "replay/times/actual_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/demangle/demangle.hpp"

namespace cudabpf::replay {

namespace {

constexpr const char* WITH_GPU = "record both at once: cudabpf run --capture DIR --gpu -- CMD";

bool gives_work(Action action) {
  return action == Action::launch || action == Action::graph || action == Action::copy ||
         action == Action::set;
}

// A UUID as all write it: without "GPU-", and without what divides it.
std::string digits_of(std::string_view uuid) {
  if (uuid.starts_with("GPU-")) uuid.remove_prefix(std::string_view("GPU-").size());
  std::string digits;
  for (char letter : uuid)
    if (letter != '-') digits += letter;
  return digits;
}

// Both have the moment at which recording began.
bool is_other_run(const TraceHeader& header, const Manifest& manifest) {
  return header.began() && manifest.unix_ns && header.began() != manifest.unix_ns;
}

Error not_of_capture(std::string message) {
  return {std::move(message), "give the trace that `run --capture` wrote beside this folder"};
}

}  // namespace

ActualTimesReader::ActualTimesReader(const Tape& tape, const Manifest& manifest,
                                     analyze::Names& names)
    : manifest_(manifest), names_(names) {
  std::vector<std::uint32_t> of_steps;
  distinct_ = distinct_launches(tape, manifest, &of_steps);
  for (const DistinctLaunch& launch : distinct_)
    kernels_.push_back(demangle(manifest.kernels[launch.kernel].name));
  for (const bundle::Operation& operation : tape.operations())
    if (gives_work(operation.action))
      calls_[operation.call].is_graph = operation.action == Action::graph;
  for (std::size_t i = 0; i < of_steps.size(); i++)
    if (of_steps[i] != NONE)
      calls_[tape.steps()[i].operation->call].launches.push_back(of_steps[i]);
  for (auto& [id, call] : calls_) {
    std::sort(call.launches.begin(), call.launches.end());
    call.launches.erase(std::unique(call.launches.begin(), call.launches.end()),
                        call.launches.end());
  }
  std::uint64_t begin = manifest.iteration.begin_ns;
  times_.wall = std::max(manifest.iteration.end_ns, begin) - begin;
}

void ActualTimesReader::line(const analyze::Line& line) {
  bool is_call = line.kind == analyze::LineKind::call;
  bool is_operation = line.kind == analyze::LineKind::gpu_operation;
  if (!is_call && !is_operation) return;
  measured_ |= is_operation;
  auto call = calls_.find(is_call ? line.id : line.call);
  if (call == calls_.end()) return;
  if (is_call)
    add_call(line, call->second);
  else if (line.has(analyze::Field::duration))
    add_operation(line, call->second);
}

void ActualTimesReader::add_call(const analyze::Line& line, Call& call) {
  in_trace_ += !call.is_in_trace;
  call.is_in_trace = true;
  if (line.pid != manifest_.iteration.pid)
    note_other(line.id, fmt::format("process {}, not of {}", line.pid, manifest_.iteration.pid));
  else if (line.kernel && !call.is_graph && !call.launches.empty() &&
           !has_name(call.launches.front(), names_.text(line.kernel)))
    note_other(line.id, fmt::format("{}, not of {}", names_.text(line.kernel),
                                    kernels_[call.launches.front()]));
}

void ActualTimesReader::note_other(std::uint64_t call, const std::string& why) {
  if (other_.empty()) other_ = fmt::format("call {} in the trace is one of {}", call, why);
}

void ActualTimesReader::add_operation(const analyze::Line& line, const Call& call) {
  if (line.op == Type::graph) {
    whole_graph_ = true;
    return;
  }
  ActualOperation operation{analyze::GpuOp::copy, line.ts, line.end()};
  if (line.op == Op::set) operation.op = analyze::GpuOp::set;
  // Some drivers copy and fill by kernels of their own, which are on no tape.
  if (line.op == Type::kernel && !call.launches.empty()) {
    operation.op = analyze::GpuOp::kernel;
    operation.launch = launch_of(line, call);
  }
  times_.operations.push_back(operation);
}

// A trace, or CUPTI, may cut a very long name.
bool ActualTimesReader::has_name(std::uint32_t launch, std::string_view name) const {
  constexpr std::size_t CUT = 128;
  std::string_view ours = kernels_[launch];
  std::size_t both = std::min(ours.size(), name.size());
  return ours == name || (both >= CUT && ours.substr(0, CUT) == name.substr(0, CUT));
}

std::uint32_t ActualTimesReader::launch_of(const analyze::Line& line, const Call& call) const {
  std::uint32_t found = NONE;
  for (std::uint32_t i : call.launches) {
    const DistinctLaunch& launch = distinct_[i];
    if (launch.grid != line.grid || launch.block != line.block ||
        !has_name(i, names_.text(line.kernel)))
      continue;
    if (launch.shared == line.shared) return i;
    found = i;
  }
  return found == NONE && !call.is_graph ? call.launches.front() : found;
}

Result<ActualTimes> ActualTimesReader::times(const analyze::TraceFacts& facts) const {
  if (std::string why = why_other_gpu(facts.header, manifest_); !why.empty())
    return not_of_capture(std::move(why));
  if (is_other_run(facts.header, manifest_))
    return not_of_capture("the trace is of another run than the capture");
  if (!measured_) return Error{"the trace has no times of GPUs", WITH_GPU};
  if (in_trace_ < calls_.size())
    return not_of_capture(fmt::format("{} of the {} calls on the tape are not in the trace",
                                      calls_.size() - in_trace_, calls_.size()));
  if (!other_.empty()) return not_of_capture(other_);
  if (whole_graph_)
    return Error{"the trace has times of whole graphs, not of their kernels",
                 "record it with --gpu, not --gpu=graphs"};
  if (times_.operations.empty())
    return Error{"the trace has no GPU times of the calls on the tape", WITH_GPU};
  return times_;
}

Result<ActualTimes> read_actual_times(const std::vector<std::string>& paths, const Tape& tape,
                                      const Manifest& manifest) {
  auto trace = TRY(analyze::TraceReader::open(paths));
  ActualTimesReader actual(tape, manifest, trace->names());
  TRY(analyze::analyze(*trace, {&actual}));
  return actual.times(trace->facts());
}

bool is_of_capture(const TraceHeader& header, std::uint32_t device, const Manifest& manifest) {
  const bundle::Device& captured = manifest.devices.front();
  std::string uuid = digits_of(captured.uuid);
  if (!header.sampling) return false;
  for (const auto& gpu : header.sampling->gpus)
    if (gpu.device == device)
      return uuid.empty() || gpu.uuid.empty() ? gpu.name == captured.name
                                              : digits_of(gpu.uuid) == uuid;
  return false;
}

std::string why_other_gpu(const TraceHeader& header, const Manifest& manifest) {
  const bundle::Device& captured = manifest.devices.front();
  // A part of a GPU has a name and an identity of its own, which no header has.
  if (header.gpus.empty() || captured.name.find(" MIG ") != std::string::npos) return {};
  std::string uuid = digits_of(captured.uuid);
  bool by_uuid = !uuid.empty();
  for (const auto& gpu : header.gpus) by_uuid &= !gpu.uuid.empty();  // in a redacted trace they are
  for (const auto& gpu : header.gpus)
    if (by_uuid ? digits_of(gpu.uuid) == uuid : gpu.name == captured.name) return {};
  const auto& first = header.gpus.front();
  if (!by_uuid || first.name != captured.name)
    return fmt::format("the trace is of {}, and the capture of {}", first.name, captured.name);
  return fmt::format("the trace is of another {} than the capture: {}, not {}", first.name,
                     first.uuid, captured.uuid);
}

}  // namespace cudabpf::replay
