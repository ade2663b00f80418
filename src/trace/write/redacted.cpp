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
  if (!call.has_text || !call.function || !has_path(call)) return sink_.call(call);
  Call shown = call;
  shown.text = LEFT_OUT;
  shown.string_cut = false;
  sink_.call(shown);
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
