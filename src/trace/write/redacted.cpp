#include "trace/write/redacted.hpp"

#include <algorithm>
#include <string_view>

namespace cudabpf {

namespace {

constexpr std::string_view LEFT_OUT = "(redacted)";

// Which libcuda it is stays: its name has the version.
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
  Session told = session;
  told.redacted = true;
  told.host.clear();
  told.command.clear();
  for (Gpu& gpu : told.gpus) gpu.uuid.clear();
  for (SampledGpu& gpu : told.sampling.gpus) gpu.uuid.clear();
  for (Library& library : told.libraries) library = redacted(std::move(library));
  sink_.begin(told);
}

void RedactedSink::call(const Call& call) {
  if (!call.has_text || !call.function || !has_path(call)) return sink_.call(call);
  Call told = call;
  told.text = LEFT_OUT;
  told.string_cut = false;
  sink_.call(told);
}

void RedactedSink::process(const Process& process) {
  Process told;
  told.op = process.op;
  told.ts = process.ts;
  told.pid = process.pid;
  told.ppid = process.ppid;
  told.ns_pid = process.ns_pid;
  told.comm = process.comm;
  told.exit_code = process.exit_code;
  told.signal = process.signal;
  sink_.process(told);
}

void RedactedSink::library(const Library& library) { sink_.library(redacted(library)); }

void RedactedSink::gpu_times(const GpuTimes& times) {
  GpuTimes told = times;
  told.library = told.library.substr(told.library.rfind('/') + 1);
  if (!told.why_not.empty()) told.why_not = LEFT_OUT;
  sink_.gpu_times(told);
}

void RedactedSink::lost(const LossEvent& loss) {
  LossEvent told = loss;
  if (!told.detail.empty()) told.detail = LEFT_OUT;
  sink_.lost(told);
}

}  // namespace cudabpf
