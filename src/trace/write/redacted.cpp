#include "trace/write/redacted.hpp"

#include <algorithm>
#include <string_view>

namespace cudabpf {

namespace {

constexpr std::string_view LEFT_OUT = "(redacted)";

// Keeps the version in its name, so that it is known which libcuda it is.
Library redacted(Library library) {
  library.path.erase(0, library.path.rfind('/') + 1);
  if (!library.error.empty()) library.error = LEFT_OUT;
  return library;
}

bool has_path(const Call& call) {
  const auto& arguments = call.function->arguments;
  auto text = std::find_if(arguments.begin(), arguments.end(),
                           [](const Argument& argument) { return is_text(argument.role); });
  return text != arguments.end() && text->role == Role::path;
}

// Which file of a package or of Python's own library it is; of another, the name alone.
std::string without_place(const std::string& path) {
  for (std::string_view library : {"site-packages/", "dist-packages/", "lib/python3."})
    if (std::size_t at = path.rfind(library); at != path.npos) return path.substr(at);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

void RedactedSink::begin(const Session& session) {
  Session shown = session;
  shown.redacted = true;
  shown.host.clear();
  shown.command.clear();
  for (Gpu& gpu : shown.gpus) gpu.uuid.clear();
  for (SampledGpu& gpu : shown.sampling.gpus) gpu.uuid.clear();
  for (Library& library : shown.libraries) library = redacted(std::move(library));
  sink_.begin(shown);
}

void RedactedSink::call(const Call& call) {
  bool names_path = call.has_text && call.function && has_path(call);
  if (!names_path && !call.stack) return sink_.call(call);
  Call shown = call;
  if (call.stack) shown.stack = &this->shown(*call.stack);
  if (names_path) {
    shown.text = LEFT_OUT;
    shown.string_cut = false;
  }
  sink_.call(shown);
}

const PythonStack& RedactedSink::shown(const PythonStack& stack) {
  constexpr std::size_t MAX = 1 << 15;
  if (stacks_.size() >= MAX) stacks_.clear();
  auto [at, is_new] = stacks_.try_emplace(stack.number, stack);
  if (is_new)
    for (PythonFrame& frame : at->second.frames)
      frame.function = std::make_shared<PythonFunction>(
          PythonFunction{frame.function->name, without_place(frame.function->file)});
  return at->second;
}

void RedactedSink::process(const Process& process) {
  Process shown;
  shown.op = process.op;
  shown.ts = process.ts;
  shown.pid = process.pid;
  shown.ppid = process.ppid;
  shown.ns_pid = process.ns_pid;
  shown.comm = process.comm;
  shown.exit_code = process.exit_code;
  shown.signal = process.signal;
  sink_.process(shown);
}

void RedactedSink::library(const Library& library) { sink_.library(redacted(library)); }

void RedactedSink::gpu_times(const GpuTimes& times) {
  GpuTimes shown = times;
  shown.library = shown.library.substr(shown.library.rfind('/') + 1);
  if (!shown.why_not.empty()) shown.why_not = LEFT_OUT;
  sink_.gpu_times(shown);
}

void RedactedSink::lost(const LossEvent& loss) {
  LossEvent shown = loss;
  if (!shown.detail.empty()) shown.detail = LEFT_OUT;
  sink_.lost(shown);
}

}  // namespace cudabpf
