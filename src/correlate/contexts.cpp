#include "correlate/contexts.hpp"

namespace cudabpf {

namespace {

// No program has so many; one that only makes them must not take all memory.
constexpr std::size_t MAX_CONTEXTS = 4096;
constexpr std::size_t MAX_DEPTH = 64;

void push(std::vector<std::uint64_t>& stack, std::uint64_t context) {
  if (stack.size() == MAX_DEPTH) stack.erase(stack.begin());
  stack.push_back(context);
}

void pop(std::vector<std::uint64_t>& stack) {
  if (!stack.empty()) stack.pop_back();
}

}  // namespace

// Pinned and physical memory belong to no context, and what is freed may be another's.
bool Contexts::concerned(const Function& function) {
  if (function.type == "transfer" || function.type == "sync") return true;
  if (function.type == "kernel" || function.type == "graph") return function.op == "launch";
  if (function.type != "memory") return false;
  bool of_device =
      function.kind == "device" || function.kind == "async" || function.kind == "managed";
  return function.op == "set" || (function.op == "alloc" && of_device);
}

Contexts::Device Contexts::known(const OfProcess& process, std::uint64_t context) {
  auto device = process.devices.find(context);
  return device == process.devices.end() ? Device() : Device(device->second);
}

void Contexts::look_up(std::uint32_t pid, std::uint32_t tid) {
  last_pid_ = pid;
  last_tid_ = tid;
  last_device_.reset();
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto stack = process->second.current.find(tid);
  if (stack == process->second.current.end() || stack->second.empty()) return;
  last_device_ = known(process->second, stack->second.back());
}

void Contexts::follow(const Call& call) {
  if (call.function->type != "context") return;
  last_pid_ = 0;
  OfProcess& process = processes_[call.pid];
  if (!call.has_return)
    process.current.erase(call.tid);  // whether it changed something is not known
  else if (call.result == 0)
    change(process, call);
}

void Contexts::change(OfProcess& process, const Call& call) {
  std::string_view name = call.function->name;
  std::uint64_t given = call.words.empty() ? 0 : call.words[0];
  std::uint64_t made = call.outs.empty() ? 0 : call.outs[0];
  auto& stack = process.current[call.tid];
  auto learn = [&](Device device) {
    process.devices.erase(made);  // another one may have had its address
    if (process.devices.size() >= MAX_CONTEXTS) process.devices.clear();
    if (made && device) process.devices[made] = *device;
  };

  if (name == "cuCtxCreate") {
    learn(call.details.device);
    push(stack, made);
  } else if (name == "cuDevicePrimaryCtxRetain" || name == "cuGreenCtxCreate") {
    learn(call.details.device);
  } else if (name == "cuCtxFromGreenCtx") {
    learn(known(process, call.words.size() > 1 ? call.words[1] : 0));
  } else if (name == "cuCtxSetCurrent") {
    pop(stack);
    if (given) push(stack, given);
  } else if (name == "cuCtxPushCurrent") {
    push(stack, given);
  } else if (name == "cuCtxPopCurrent") {
    pop(stack);
  } else if (name == "cuCtxDestroy") {
    if (!stack.empty() && stack.back() == given) pop(stack);
    process.devices.erase(given);
  }
}

void Contexts::thread_gone(std::uint32_t pid, std::uint32_t tid) {
  last_pid_ = 0;
  auto process = processes_.find(pid);
  if (process != processes_.end()) process->second.current.erase(tid);
}

void Contexts::process_gone(std::uint32_t pid) {
  last_pid_ = 0;
  processes_.erase(pid);
}

}  // namespace cudabpf
