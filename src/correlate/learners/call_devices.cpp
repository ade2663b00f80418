#include "correlate/learners/call_devices.hpp"

namespace cudabpf {

namespace {

bool is_any_of(const auto& what, auto... others) { return ((what == others) || ...); }

bool has_role(const Function& function, Role role) {
  for (const Argument& argument : function.arguments)
    if (argument.role == role && !argument.out) return true;
  return false;
}

// Pinned and physical memory belongs to no context; memory that is freed, taken from a pool or
// copied between peers, and an event that is waited for, may belong to another one.
bool works_on_one_device(const Function& function) {
  return function.meaning.one_device && !has_role(function, Role::pool) &&
         !is_any_of(function.kind, MemoryKind::host, MemoryKind::vmm);
}

// A function of a newer driver that the table does not have.
bool may_change_contexts(const Function& function) {
  return function.type == Type::other &&
         (function.name.starts_with("cuCtx") || function.name.starts_with("cuGreenCtx") ||
          function.name.starts_with("cuDevicePrimaryCtx"));
}

bool makes_stream(const Function& function) {
  return function.meaning.stream == StreamEffect::create;
}

}  // namespace

bool CallDevices::follows(const Function& function) {
  if (makes_stream(function)) return true;
  switch (function.context) {
    case ContextEffect::none:
    case ContextEffect::attach:
    case ContextEffect::release_primary:  // they change no context's device
    case ContextEffect::reset_primary:
      return false;
    default:
      return true;
  }
}

CallDevices::Device CallDevices::known(const OfProcess& process, std::uint64_t context) {
  auto device = process.devices.find(context);
  return device == process.devices.end() ? Device() : Device(device->second);
}

CallDevices::Device CallDevices::current(ThreadId thread) {
  if (thread == last_thread_) return last_device_;
  last_thread_ = thread;
  last_device_.reset();
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return last_device_;
  if (std::uint64_t context = process->second.contexts.current(thread.pid, thread.tid))
    last_device_ = known(process->second, context);
  return last_device_;
}

CallDevices::Device CallDevices::device_of(ThreadId thread, const Frame& frame) {
  const Function& function = *frame.function;
  if (!works_on_one_device(function)) return {};
  auto of = [&](std::uint64_t handle) {
    auto process = processes_.find(thread.pid);
    return process == processes_.end() ? Device() : known(process->second, handle);
  };
  constexpr std::uint64_t LAST_DEFAULT_STREAM = 2;
  const auto& stream = frame.details.stream;
  if (stream && *stream > LAST_DEFAULT_STREAM) return of(*stream);
  if (has_role(function, Role::context)) return frame.nwords ? of(frame.words[0]) : Device();
  return current(thread);
}

void CallDevices::ended(const CallStack&, Call& call) {
  const Function& function = *call.function;
  if (may_change_contexts(function)) return process_gone(call.pid);
  if (function.context == ContextEffect::none && !makes_stream(function)) return;
  last_thread_ = {};
  make_room();
  OfProcess& process = processes_[call.pid];
  std::size_t before = process.size();
  bool may_have_failed_before =
      is_any_of(function.context, ContextEffect::destroy, ContextEffect::detach);
  if (call.has_return && call.result == 0)
    change(process, call);
  else if (follows(function) && (!call.has_return || may_have_failed_before))
    process.contexts.forget_thread(call.pid, call.tid);  // it may have changed its contexts
  kept_ += process.size() - before;
}

void CallDevices::make_room() {
  if (bounds_.has_memory(Kept::contexts, kept_)) return;
  OfProcess& most = largest_of(processes_);
  bounds_.left_out(Kept::contexts, most.size());
  kept_ -= most.size();
  most = {};
}

void CallDevices::change(OfProcess& process, const Call& call) {
  ContextEffect effect = call.function->context;
  learn(process, call, makes_stream(*call.function) ? current({call.pid, call.tid}) : Device());
  last_thread_ = {};
  if (effect == ContextEffect::none) return;
  ContextCall change = context_call(call);
  change.seen_begin = process.seen_begin;
  if (std::uint64_t gone = process.contexts.change(change)) process.devices.erase(gone);
}

// The device of what the call made: a stream, a context, or what becomes one.
void CallDevices::learn(OfProcess& process, const Call& call, Device current) {
  const Function& function = *call.function;
  auto of_green = [&] { return known(process, call.words.size() > 1 ? call.words[1] : 0); };
  Device device;
  if (is_any_of(function.context, ContextEffect::of_green, ContextEffect::green_stream))
    device = of_green();
  else if (makes_stream(function))
    device = current;
  else if (is_any_of(function.context, ContextEffect::create, ContextEffect::retain_primary,
                     ContextEffect::create_green))
    device = call.details.device;
  else
    return;
  std::uint64_t made = call.outs.empty() ? 0 : call.outs[0];
  process.devices.erase(made);  // an earlier one may have had the same address
  if (made && device) process.devices[made] = *device;
}

void CallDevices::thread_gone(ThreadId thread) {
  last_thread_ = {};
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.contexts.size();
  process->second.contexts.forget_thread(thread.pid, thread.tid);
  kept_ += process->second.contexts.size();
}

void CallDevices::process_gone(std::uint32_t pid) {
  last_thread_ = {};
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.size();
  processes_.erase(process);
}

}  // namespace cudabpf
