#include "collect/bpf/python_walks.hpp"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collect/python/python_code.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

abi::cb_python_process for_the_kernel(const PythonInterpreter& python) {
  constexpr unsigned WORD = 8;
  const abi::cb_python_layout& at = python.at;
  auto word = [&](abi::cb_in_frame which) {
    return static_cast<std::uint8_t>(at.in_frame[which] / WORD);
  };
  abi::cb_python_process process{};
  process.interpreters = python.runtime + at.interpreters;
  process.state = abi::CB_PYTHON_KNOWN;
  process.next_interpreter = at.next_interpreter;
  process.threads = at.threads;
  process.previous_thread = at.previous_thread;
  process.native_id = at.native_id;
  process.holder = at.holder;
  process.current = at.current;
  process.code = word(abi::CB_FRAME_CODE);
  process.previous = word(abi::CB_FRAME_PREVIOUS);
  process.instruction = word(abi::CB_FRAME_INSTRUCTION);
  process.owner = static_cast<std::uint8_t>(at.in_frame[abi::CB_FRAME_OWNER]);
  process.owners = at.owners;
  return process;
}

std::uint64_t key_of(const abi::cb_walk& walk) {
  Hasher hasher;
  for (unsigned i = 0; i < walk.frames; i++) {
    hasher.add(walk.frame[i].code);
    hasher.add(std::uint64_t{walk.frame[i].instruction} << 32 | walk.frame[i].freed);
  }
  hasher.add(walk.cut);
  return hasher.result();
}

}  // namespace

PythonWalks::PythonWalks(ProbeSet& probes)
    : probes_(probes),
      wake_(EventFd::make()),
      record_((sizeof(abi::cb_stack) + CB_STACK_SIZE) / sizeof(std::uint64_t)) {}

// ----- the processes

void PythonWalks::ask(Request request) {
  {
    std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  wake_.set();
}

void PythonWalks::look() {
  wake_.clear();
  std::deque<Request> requests;
  {
    std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const Request& request : requests) {
    if (request.what == Request::look) look_at(request.pid);
    if (request.what == Request::refuse) set_state(request.pid, abi::CB_PYTHON_NONE);
    if (request.what == Request::forget) {
      bpf_map_delete_elem(probes_.pythons(), &request.pid);
      std::lock_guard lock(mutex_);
      interpreters_.erase(request.pid);
    }
  }
}

// Later it may be another program, or may have loaded Python.
void PythonWalks::look_at_selected(std::uint32_t pid) {
  if (!look_at(pid)) bpf_map_delete_elem(probes_.pythons(), &pid);
}

bool PythonWalks::look_at(std::uint32_t pid) {
  Procfs procfs;
  auto id = static_cast<pid_t>(pid);
  std::vector<Mapping> maps = procfs.maps(id);
  auto python = find_python(ProcessMemory(id), maps, procfs.process(id).exe);
  if (python && python->why_not.empty() && !follow(pid, *python, maps))
    python->why_not = "it cannot be watched for code that is freed";
  if (!python || !python->why_not.empty()) set_state(pid, abi::CB_PYTHON_NONE);
  std::lock_guard lock(mutex_);
  auto early = early_.extract(pid);
  if (!python) return false;
  if (early && python->why_not.empty()) lose(early.mapped());
  Interpreter& said = interpreters_[pid];
  if (!said || said->why_not != python->why_not) say(pid, *python);
  said = std::make_shared<const PythonInterpreter>(std::move(*python));
  return true;
}

void PythonWalks::say(std::uint32_t pid, const PythonInterpreter& python) {
  bool refused = !python.why_not.empty();
  found_.push_back(
      {pid, refused,
       refused ? fmt::format("Python {}: {}", python.version, python.why_not) : python.version});
}

// Walks begin once it is known to the kernel's side.
bool PythonWalks::follow(std::uint32_t pid, const PythonInterpreter& python,
                         const std::vector<Mapping>& maps) {
  auto in = std::find_if(maps.begin(), maps.end(), [&](const Mapping& mapping) {
    return python.deallocates >= mapping.start && python.deallocates < mapping.end;
  });
  if (in == maps.end() || !probes_.watch_freed_codes(pid, *in, python.deallocates)) return false;
  abi::cb_python_process process = for_the_kernel(python);
  return bpf_map_update_elem(probes_.pythons(), &pid, &process, BPF_ANY) == 0;
}

void PythonWalks::set_state(std::uint32_t pid, abi::cb_python_state state) {
  abi::cb_python_process process{};
  process.state = state;
  bpf_map_update_elem(probes_.pythons(), &pid, &process, BPF_ANY);
}

void PythonWalks::stop() {
  std::lock_guard lock(mutex_);
  for (const auto& [pid, calls] : early_) lose(calls);
  early_.clear();
}

PythonWalks::Interpreter PythonWalks::known(std::uint32_t pid) const {
  std::lock_guard lock(mutex_);
  auto known = interpreters_.find(pid);
  return known == interpreters_.end() ? nullptr : known->second;
}

// ----- records

void PythonWalks::pass(const Source::OnRecord& pass, const void* record, std::size_t size) {
  balance_++;
  pass({static_cast<const std::byte*>(record), size});
}

void PythonWalks::hand_over(const Source::OnRecord& pass) {
  std::deque<Found> found;
  {
    std::lock_guard lock(mutex_);
    found.swap(found_);
  }
  for (const Found& one : found) {
    std::vector<std::uint64_t> bytes((sizeof(abi::cb_python) + one.text.size() + 8) / 8);
    auto* record = reinterpret_cast<abi::cb_python*>(bytes.data());
    record->head.ts = now_ns(CLOCK_MONOTONIC);
    record->head.pid = record->head.tid = one.pid;
    record->head.kind = abi::CB_PYTHON;
    record->head.string_size = static_cast<std::uint16_t>(one.text.size() + 1);
    record->head.drops = probes_.drops(one.pid);
    record->refused = one.refused;
    std::memcpy(record + 1, one.text.c_str(), one.text.size() + 1);
    this->pass(pass, bytes.data(), sizeof(*record) + one.text.size() + 1);
  }
}

void PythonWalks::take(std::span<const std::byte> record, const Source::OnRecord& pass) {
  abi::cb_head head{};
  if (record.size() >= sizeof(head)) std::memcpy(&head, record.data(), sizeof(head));
  if (head.kind == abi::CB_WALK && record.size() >= sizeof(abi::cb_walk)) {
    balance_--;
    abi::cb_walk walk{};
    std::memcpy(&walk, record.data(), sizeof(walk));
    walk.frames = std::min<std::uint16_t>(walk.frames, CB_WALK_FRAMES);
    hand_over(pass);
    return take_walk(walk, pass);
  }
  if (head.kind == abi::CB_EXEC || head.kind == abi::CB_EXIT) {
    if (auto gone = stacks_.extract(head.pid)) numbers_ -= gone.mapped().numbers.size();
    {
      std::lock_guard lock(mutex_);
      interpreters_.erase(head.pid);
      if (auto early = early_.extract(head.pid)) lose(early.mapped());
    }
    ask({Request::forget, head.pid});
  }
  pass(record);
}

void PythonWalks::take_walk(const abi::cb_walk& walk, const Source::OnRecord& pass) {
  std::uint32_t pid = walk.head.pid;
  switch (walk.end) {
    case abi::CB_WALKED:
      return pass_stack(walk, pass);
    case abi::CB_WALK_ASKS:
      return ask({Request::look, pid});
    case abi::CB_WALK_EARLY:
      return came_early(pid);
    case abi::CB_WALK_SEVERAL:
      return refuse(pid, CB_PYTHON_INTERPRETERS);
    default:
      return lose();
  }
}

void PythonWalks::refuse(std::uint32_t pid, std::string why) {
  {
    std::lock_guard lock(mutex_);
    auto known = interpreters_.find(pid);
    if (known == interpreters_.end() || !known->second->why_not.empty()) return;
    PythonInterpreter refused = *known->second;
    refused.why_not = std::move(why);
    say(pid, refused);
    known->second = std::make_shared<const PythonInterpreter>(std::move(refused));
  }
  ask({Request::refuse, pid});
}

// Whether it has Python, and so should have a stack, is known once somebody has looked.
void PythonWalks::came_early(std::uint32_t pid) {
  std::lock_guard lock(mutex_);
  auto known = interpreters_.find(pid);
  if (known == interpreters_.end())
    early_[pid]++;
  else if (known->second->why_not.empty())
    lose();
}

void PythonWalks::pass_stack(const abi::cb_walk& walk, const Source::OnRecord& pass) {
  if (!walk.frames) {
    if (walk.cut) lose();
    return;
  }
  constexpr std::size_t MAX_NUMBERS = 1 << 18;  // of all processes
  if (numbers_ >= MAX_NUMBERS) {  // they are described again, under numbers that are used again
    stacks_.clear();
    numbers_ = 0;
  }
  Stacks& stacks = stacks_[walk.head.pid];
  std::uint64_t key = key_of(walk);
  auto known = stacks.numbers.find(key);
  abi::cb_call_stack record{};
  record.head = walk.head;
  record.head.kind = abi::CB_CALL_STACK;
  record.number = known != stacks.numbers.end() ? known->second : describe(walk, stacks, key, pass);
  if (record.number) return this->pass(pass, &record, sizeof(record));
  lose();
}

// Describes the stack under a new number. 0: it could not be read.
std::uint64_t PythonWalks::describe(const abi::cb_walk& walk, Stacks& stacks, std::uint64_t key,
                                    const Source::OnRecord& pass) {
  auto python = known(walk.head.pid);
  if (!python || !read_frames(walk, *python)) return 0;
  numbers_ -= stacks.numbers.size();
  std::uint64_t place = stacks.numbered % CB_STACK_PLACES;
  std::uint64_t number = CB_STACK_PLACES + stacks.numbered++;
  if (place < stacks.places.size())
    stacks.numbers.erase(std::exchange(stacks.places[place], key));
  else
    stacks.places.push_back(key);
  stacks.numbers[key] = number;
  numbers_ += stacks.numbers.size();
  auto* record = reinterpret_cast<abi::cb_stack*>(record_.data());
  record->number = number;
  this->pass(pass, record, sizeof(*record) + record->size);
  return number;
}

// Reads all frames into the record. False: one could not be read, or is not that of the walk.
bool PythonWalks::read_frames(const abi::cb_walk& walk, const PythonInterpreter& python) {
  privileges::Raised looking({CAP_SYS_PTRACE});
  ProcessMemory memory(static_cast<pid_t>(walk.head.pid));
  auto* record = reinterpret_cast<abi::cb_stack*>(record_.data());
  *record = {};
  record->head = walk.head;
  record->head.kind = abi::CB_STACK;
  record->head.flags = 0;
  record->cut = walk.cut != 0;
  auto* frames = reinterpret_cast<char*>(record + 1);
  for (unsigned i = 0; i < walk.frames; i++) {
    auto text = read_frame_text(memory, python, walk.frame[i].code, walk.frame[i].instruction);
    if (!text) return false;
    abi::cb_stack_frame frame{.line = text->line,
                              .function_size = static_cast<__u16>(text->function.size()),
                              .file_size = static_cast<__u16>(text->file.size())};
    std::string bytes(reinterpret_cast<const char*>(&frame), sizeof(frame));
    bytes += text->function + text->file;
    bytes.resize((bytes.size() + 7) & ~std::size_t{7});
    if (record->size + bytes.size() > CB_STACK_SIZE) {
      record->cut = 1;
      break;
    }
    std::copy(bytes.begin(), bytes.end(), frames + record->size);
    record->size += static_cast<__u32>(bytes.size());
    record->frames++;
    if (text->cut) record->head.flags = abi::CB_STRING_CUT;
  }
  return unchanged(walk);
}

// Nothing that was read has been freed since the walk.
bool PythonWalks::unchanged(const abi::cb_walk& walk) const {
  return std::all_of(walk.frame, walk.frame + walk.frames, [&](const auto& frame) {
    return probes_.codes_freed(walk.head.pid, frame.code) == frame.freed;
  });
}

}  // namespace cudabpf
