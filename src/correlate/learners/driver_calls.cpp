#include "correlate/learners/driver_calls.hpp"

#include "util/limited.hpp"

namespace cudabpf {

namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

const DriverDevice& DriverCalls::device(std::uint32_t number) {
  constexpr std::size_t MAX = 4096;  // the kernel knows a few dozen
  if (!has_room_for(devices_, number, MAX)) devices_.clear();
  DriverDevice& known = devices_[number];
  // A module that loads later gets its numbers only then.
  if (known.name.empty()) known = device_of_(number);
  return known;
}

void DriverCalls::on_record(const Record& record) {
  switch (record.head->kind) {
    case abi::CB_DRIVER:
      return begins(record);
    case abi::CB_DRIVER_RETURN:
      return ends(record);
    default:
      return interrupted(record);
  }
}

// An ioctl belongs to the call that its thread is making.
void DriverCalls::emit(const DriverCall& call) {
  if (call.op == DriverCall::Op::ioctl && call.call)
    if (CallStack* stack = open_calls_.find({call.pid, call.tid}))
      stack->ioctl_made(call.call, call.duration);
  trace_.add(call);
}

void DriverCalls::begins(const Record& record) {
  const abi::cb_head& head = *record.head;
  // If nothing was lost in between, the kernel never reported the previous one's end.
  Key key = key_of(head);
  miss_end(key, head.drops);
  make_room();
  Open& open = open_[key];
  open = {};
  open.drops = head.drops;
  DriverCall& event = open.call;
  event.op = static_cast<DriverCall::Op>(head.function);
  const CallStack* stack = open_calls_.find(thread_of(head));
  const Frame* call = stack ? stack->innermost() : nullptr;
  event.call = call ? call->id : 0;
  event.ts = trace_.ts_of(head.ts);
  event.pid = head.pid;
  event.tid = head.tid;
  event.read_fault = head.flags & abi::CB_READ_FAULT;
  const DriverDevice& device = this->device(record.driver->device);
  event.device = device.name;
  if (event.op == DriverCall::Op::mmap) event.length = record.driver->argument;
  if (event.op == DriverCall::Op::fault) {
    event.address = record.driver->argument;
    event.to_write = record.driver->command != 0;
  }
  if (event.op == DriverCall::Op::ioctl) {
    open.structure = copy_of(record.structure);
    open.parameters = copy_of(record.parameters);
    open.words.node = device.node;
    open.words.command = record.driver->command;
    if (head.flags & abi::CB_INDIRECT) {
      open.words.inner = record.driver->inner;
      open.words.inner_size = record.driver->inner_size;
    }
    open.words.structure = open.structure;
    open.words.parameters = open.parameters;
    event.details = describe_ioctl(open.words, version_);
    objects_.describe_free(event.details);
  }
  if (head.flags & abi::CB_OUT_LOST) {
    returns_missed_++;
    give_up(key, false);
  }
}

void DriverCalls::ends(const Record& record) {
  const abi::cb_head& head = *record.head;
  auto at = open_.find(key_of(head));
  if (at == open_.end()) return;  // its begin was lost, and counted as such
  Open& open = at->second;
  DriverCall& event = open.call;
  bool same = static_cast<std::uint16_t>(event.op) == head.function;
  if (!same || open.drops != head.drops) return give_up(at->first, false);
  event.has_return = true;
  std::uint64_t ts = trace_.ts_of(head.ts);
  event.duration = ts > event.ts ? ts - event.ts : 0;
  event.result = record.driver_return->result;
  event.read_fault |= (head.flags & abi::CB_READ_FAULT) != 0;
  if (event.op == DriverCall::Op::ioctl && event.result == 0) {
    event.status = describe_ioctl_return(open.words, record.structure, version_, event.details);
    if (head.flags & abi::CB_STATUS_READ) event.status = record.driver_return->status;
    if (event.status == 0u) objects_.follow(event.pid, event.details);
  }
  emit(event);
  open_.erase(at);
}

void DriverCalls::interrupted(const Record& record) {
  std::uint64_t began = trace_.ts_of(record.interrupt->began);
  std::uint64_t ended = trace_.ts_of(record.head->ts);
  DriverCall event;
  event.op = static_cast<DriverCall::Op>(record.head->function);
  event.ts = began;
  event.duration = ended > began ? ended - began : 0;
  event.has_return = true;
  event.cpu = record.head->tid;
  emit(event);
}

// An operation that is still open must have ended. Dropped records are counted elsewhere.
void DriverCalls::miss_end(Key key, std::uint32_t drops) {
  auto last = open_.find(key);
  if (last != open_.end() && last->second.drops == drops) returns_missed_++;
  give_up(key, false);
}

void DriverCalls::give_up(Key key, bool unfinished) {
  auto at = open_.find(key);
  if (at == open_.end()) return;
  at->second.call.unfinished = unfinished;
  at->second.call.return_lost = !unfinished;
  emit(at->second.call);
  open_.erase(at);
}

// Gives up on all open operations; their ends stay unknown.
void DriverCalls::make_room() {
  if (bounds_.has_memory(Kept::open_operations, open_.size())) return;
  bounds_.left_out(Kept::open_operations, open_.size());
  while (!open_.empty()) give_up(open_.begin()->first, false);
}

// Threads leave the driver before they end, even if they are killed in it. The kernel's side sees
// that; a killed program's own side does not.
void DriverCalls::thread_exited(const abi::cb_head& head) {
  for (bool fault : {true, false}) {
    Key key{thread_of(head), fault};
    auto last = open_.find(key);
    bool killed = head.flags & abi::CB_RETURN_UNSEEN && last != open_.end() &&
                  last->second.drops == head.drops;
    killed ? give_up(key, true) : miss_end(key, head.drops);
  }
}

void DriverCalls::thread_ends(ThreadId thread) {
  for (bool fault : {true, false}) give_up({thread, fault}, true);
}

void DriverCalls::process_gone(std::uint32_t pid) {
  for (auto at = open_.lower_bound({{pid, 0}, false});
       at != open_.end() && at->first.first.pid == pid; at = open_.lower_bound({{pid, 0}, false}))
    thread_ends(at->first.first);
  objects_.process_gone(pid);
}

void DriverCalls::finished() {
  while (!open_.empty()) thread_ends(open_.begin()->first.first);
}

}  // namespace cudabpf
