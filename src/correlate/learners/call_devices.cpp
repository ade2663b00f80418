#include "correlate/learners/call_devices.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_CONTEXTS = 16;  // of a thread; beyond, only the last are known

void push(std::vector<std::uint64_t>& stack, std::uint64_t context) {
  if (stack.size() == MAX_CONTEXTS) stack.erase(stack.begin());
  stack.push_back(context);
}

void pop(std::vector<std::uint64_t>& stack) {
  if (!stack.empty()) stack.pop_back();
}

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
  auto stack = process->second.current.find(thread.tid);
  if (stack == process->second.current.end() || stack->second.empty()) return last_device_;
  last_device_ = known(process->second, stack->second.back());
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
  if (!follows(function)) return;
  last_thread_ = {};
  make_room();
  OfProcess& process = processes_[call.pid];
  std::size_t before = process.size();
  bool may_have_failed_before =
      is_any_of(function.context, ContextEffect::destroy, ContextEffect::detach);
  if (!call.has_return || (call.result != 0 && may_have_failed_before))
    process.current.erase(call.tid);  // it is not known whether it changed something
  else if (call.result == 0)
    change(process, call);
  kept_ += process.size() - before;
}

void CallDevices::make_room() {
  if (bounds_.has_room(Kept::contexts, kept_)) return;
  OfProcess& most = largest_of(processes_);
  bounds_.left_out(Kept::contexts, most.size());
  kept_ -= most.size();
  most = {};
}

void CallDevices::change(OfProcess& process, const Call& call) {
  std::uint64_t given = call.words.empty() ? 0 : call.words[0];
  std::uint64_t made = call.outs.empty() ? 0 : call.outs[0];
  Device current_device = makes_stream(*call.function) ? current({call.pid, call.tid}) : Device();
  auto& stack = process.current[call.tid];
  auto learn = [&](Device device) {
    process.devices.erase(made);  // an earlier one may have had the same address
    if (made && device) process.devices[made] = *device;
  };
  auto of_green = [&] { return known(process, call.words.size() > 1 ? call.words[1] : 0); };

  if (makes_stream(*call.function))
    return learn(call.function->context == ContextEffect::green_stream ? of_green()
                                                                       : current_device);
  switch (call.function->context) {
    case ContextEffect::create:
      learn(call.details.device);
      return push(stack, made);
    case ContextEffect::retain_primary:
    case ContextEffect::create_green:
      return learn(call.details.device);
    case ContextEffect::of_green:
      return learn(of_green());
    case ContextEffect::set_current:
      pop(stack);
      if (given) push(stack, given);
      return;
    case ContextEffect::push:
      return push(stack, given);
    case ContextEffect::pop:
      return pop(stack);
    case ContextEffect::destroy:
      if (!stack.empty() && stack.back() == given) pop(stack);
      process.devices.erase(given);
      return;
    case ContextEffect::detach:  // destroys it if nobody else is attached to it
      stack.clear();
      process.devices.erase(given);
      return;
    default:
      return;
  }
}

void CallDevices::thread_gone(ThreadId thread) {
  last_thread_ = {};
  auto process = processes_.find(thread.pid);
  if (process != processes_.end()) kept_ -= process->second.current.erase(thread.tid);
}

void CallDevices::process_gone(std::uint32_t pid) {
  last_thread_ = {};
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.size();
  processes_.erase(process);
}

}  // namespace cudabpf
