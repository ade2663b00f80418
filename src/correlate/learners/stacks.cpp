#include "correlate/learners/stacks.hpp"

#include <utility>

namespace cudabpf {

std::size_t Stacks::HashStack::operator()(const Stack& one) const {
  std::size_t hash = one->frames.size();
  for (const PythonFrame& frame : one->frames)
    hash = hash_of(hash, reinterpret_cast<std::uintptr_t>(frame.function.get()), frame.line);
  return hash;
}

void Stacks::on_record(const Record& record) {
  switch (record.head->kind) {
    case abi::CB_STACK:
      return describe(record);
    case abi::CB_CALL_STACK:
      return give_stack(record);
    default:
      return found_python(record);
  }
}

void Stacks::found_python(const Record& record) {
  PythonFound found;
  found.ts = trace_.ts_of(record.head->ts);
  found.pid = record.head->pid;
  (record.python->refused ? found.why_not : found.version) = record.text;
  trace_.sink().python(found);
}

void Stacks::describe(const Record& record) {
  std::uint64_t number = record.described->number;
  OfProcess& process = processes_[record.head->pid];
  auto at = static_cast<std::uint32_t>(CB_STACK_PLACE(number));
  auto known = process.find(at);
  if (known == process.end()) {
    if (!has_room()) return;
    known = process.try_emplace(at).first;
    described_++;
  }
  Place& place = known->second;
  place[1] = std::exchange(place[0], {});
  place[0] = {number, stack_of(record)};
}

Stacks::Stack Stacks::find(std::uint32_t pid, std::uint64_t number) {
  auto process = processes_.find(pid);
  if (process != processes_.end()) {
    auto place = process->second.find(static_cast<std::uint32_t>(CB_STACK_PLACE(number)));
    if (place != process->second.end())
      for (const Described& one : place->second)
        if (one.number == number && one.stack) return one.stack;
  }
  missed_++;
  return nullptr;
}

// The kernel has reported the call from the same place on its thread's stack: just now, or some
// time ago, and then it is about to return. One that began after the trace's end has no frame.
void Stacks::give_stack(const Record& record) {
  const abi::cb_head& head = *record.head;
  CallStack* calls = open_.find(thread_of(head));
  Frame* frame = calls ? calls->innermost_at(head.sp, head.drops) : nullptr;
  if (!frame || frame->stack_number) {
    missed_ += !trace_.is_over_at(head.ts);
    return;
  }
  frame->stack_number = record.stack;
  frame->stack = find(head.pid, record.stack);
}

// What no process and no call needs any more makes room for others.
bool Stacks::has_room() {
  constexpr std::size_t PATIENCE = 1024;
  auto is_full = [this] {
    return !bounds_.has_memory(Kept::stacks, described_) ||
           !bounds_.has_memory(Kept::stacks, stacks_.size()) ||
           !bounds_.has_memory(Kept::stacks, functions_.size());
  };
  if (is_full() && refused_ % PATIENCE == 0) {
    std::erase_if(stacks_, [](const Stack& one) { return one.use_count() == 1; });
    std::erase_if(functions_, [](const Function& one) { return one.use_count() == 1; });
  }
  if (!is_full()) {
    refused_ = 0;
    return true;
  }
  refused_++;
  bounds_.left_out(Kept::stacks);
  return false;
}

Stacks::Function Stacks::function_of(const StackFrame& frame) {
  auto function = std::make_shared<PythonFunction>(
      PythonFunction{std::string(frame.function), std::string(frame.file)});
  return *functions_.insert(std::move(function)).first;
}

Stacks::Stack Stacks::stack_of(const Record& record) {
  if (!has_room()) return nullptr;
  auto stack = std::make_shared<PythonStack>();
  auto rest = record.frames;
  stack->frames.reserve(record.described->frames);
  while (auto frame = next_frame(rest)) stack->frames.push_back({function_of(*frame), frame->line});
  stack->cut = record.described->cut != 0;
  stack->text_cut = record.head->flags & abi::CB_STRING_CUT;
  auto [known, is_new] = stacks_.insert(stack);
  if (is_new) stack->number = next_number_++;
  return *known;
}

void Stacks::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  described_ -= process->second.size();
  processes_.erase(process);
}

}  // namespace cudabpf
