#include "taping/tape_writer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace cudabpf::taping {

namespace {

using bundle::Action;
using bundle::Address;

// Kernels that wait for other GPUs, or for the program, never end by themselves.
std::optional<std::string> why_not_again(std::string_view kernel) {
  constexpr std::string_view COLLECTIVES[] = {"ncclDevKernel", "ncclKernel", "nvshmemi_",
                                              "cross_device_reduce_"};
  for (std::string_view part : COLLECTIVES)
    if (kernel.find(part) != std::string_view::npos)
      return "it waits for other processes (a collective)";
  return std::nullopt;
}

std::vector<bundle::JitOption> options_in(std::string_view pairs) {
  std::vector<bundle::JitOption> options;
  for (; pairs.size() >= 16; pairs.remove_prefix(16)) {
    std::uint64_t pair[2];
    std::memcpy(pair, pairs.data(), sizeof(pair));
    // Addresses of the program's buffers for messages, and their sizes, mean nothing elsewhere.
    constexpr std::uint32_t FIRST_OF_LOGS = 3, LAST_OF_LOGS = 6;
    if (pair[0] < FIRST_OF_LOGS || pair[0] > LAST_OF_LOGS)
      options.push_back({static_cast<std::uint32_t>(pair[0]), {pair[1]}});
  }
  return options;
}

// The attributes that the program has set, as far as that can be seen. A kernel and the functions
// that were made of it each have their own, and a launch by one goes by what the program has set
// for another. Each is larger when it is set.
std::vector<bundle::Attribute> attributes_of(const std::vector<abi::ci_kernel>& same) {
  constexpr struct {
    std::uint32_t attribute;
    std::int32_t unset;
  } SETTABLE[] = {{8, -1}, {9, -1}, {11, 0}, {12, 0}, {13, 0}, {14, 0}, {15, 0}};
  std::vector<bundle::Attribute> attributes;
  for (auto [attribute, unset] : SETTABLE) {
    std::int32_t value = unset;
    for (const abi::ci_kernel& one : same)
      if (one.has >> attribute & 1) value = std::max(value, one.attributes[attribute]);
    if (value != unset) attributes.push_back({attribute, value});
  }
  return attributes;
}

// Programs may say before each launch how much shared memory it may have (cuDNN does): what a
// kernel has at last may be less than what some launch was given.
void allow_shared(bundle::Kernel& kernel, std::uint32_t size) {
  constexpr std::uint32_t MAX_SHARED = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  auto wanted = static_cast<std::int32_t>(std::min<std::uint32_t>(size, INT32_MAX));
  for (bundle::Attribute& one : kernel.attributes) {
    if (one.attribute != MAX_SHARED) continue;
    one.value = std::max(one.value, wanted);
    return;
  }
  if (size) kernel.attributes.push_back({MAX_SHARED, wanted});
}

std::uint64_t when(const KeptCall& call) {
  const Meaning& meaning = call.function->meaning;
  bool waits = meaning.work == Work::wait || meaning.stream == StreamEffect::query ||
               meaning.event == EventEffect::query;
  return waits ? call.end : call.ts;
}

}  // namespace

TapeWriter::TapeWriter(bundle::FolderWriter& folder, bundle::Manifest& manifest,
                       const TapedProcess& process, const Handles& handles, StoppedThread& thread,
                       bool contents)
    : folder_(folder),
      manifest_(manifest),
      process_(process),
      handles_(handles),
      thread_(thread),
      contents_(contents) {
  manifest_.streams = {{}};
  streams_[{0, 0}] = 0;
}

Result<> TapeWriter::write(std::vector<KeptCall> calls) {
  // What a call waits for has happened when it returns; what it gives the GPU, when it is called.
  std::stable_sort(calls.begin(), calls.end(),
                   [](const KeptCall& a, const KeptCall& b) { return when(a) < when(b); });
  for (const KeptCall& call : calls)
    if (!call.failed()) TRY(add(call));
  for (const auto& [key, count] : refused_)
    manifest_.refused.push_back({key.first, key.second, count});
  return ok();
}

void TapeWriter::refuse(const std::string& what, const std::string& why) {
  refused_[{what, why}]++;
}

bundle::Operation TapeWriter::operation_of(const KeptCall& call, Action action) {
  bundle::Operation operation;
  operation.action = action;
  operation.call = call.id;
  operation.stream = stream(call, call.details.stream.value_or(0));
  return operation;
}

// The handle 2 is the default stream of the thread that uses it; so is 0 in functions that say so.
std::uint32_t TapeWriter::stream(const KeptCall& call, std::uint64_t handle) {
  constexpr std::uint64_t LEGACY = 1, OF_THREAD = 2;
  if (!handle && is_for_threads(call.function->symbol)) handle = OF_THREAD;
  if (handle == LEGACY) handle = 0;
  std::pair<std::uint64_t, std::uint32_t> key{handle, handle == OF_THREAD ? call.tid : 0};
  auto [known, is_new] = streams_.try_emplace(key, manifest_.streams.size());
  if (is_new) {
    bundle::Stream made;
    if (auto at = handles_.streams().find(handle); at != handles_.streams().end()) {
      made.priority = at->second.priority;
      made.non_blocking = at->second.non_blocking;
    }
    manifest_.streams.push_back(made);
  }
  return known->second;
}

std::uint32_t TapeWriter::event(std::uint64_t handle) {
  auto [known, is_new] = events_.try_emplace(handle, manifest_.events);
  manifest_.events += is_new;
  return known->second;
}

Result<> TapeWriter::add(const KeptCall& call) {
  const Function& function = *call.function;
  if (function.launches_kernel()) return add_launch(call);
  if (function.launches_graph()) return add_graph(call);
  if (function.type == Type::transfer && function.meaning.node == NodeWork::copy)
    return add_copy(call);
  if (function.meaning.node == NodeWork::set) return add_set(call);
  if (function.memory_effect() != MemoryEffect::none) return add_memory(call);
  bundle::Operation operation;
  if (add_event(call, operation) || add_wait(call, operation)) return folder_.add(operation);
  if (function.meaning.node != NodeWork::none)
    refuse(std::string(function.name), "it is not captured");
  return ok();
}

// ----- launches

Result<> TapeWriter::add_launch(const KeptCall& call) {
  auto payload = process_.payload(call.payload);
  if (!call.payload || !payload || payload->state != abi::CI_FILLED || !call.details.has_dims) {
    refuse(call.kernel.empty() ? "a kernel" : call.kernel, "its parameters could not be read");
    return ok();
  }
  bundle::Operation operation = operation_of(call, Action::launch);
  bundle::Launch& launch = operation.launch.emplace();
  launch.kernel = TRY(kernel(call.details.handle.value_or(0), call.kernel, call.details.shared));
  const Details& details = call.details;
  launch.grid = {details.grid.x, details.grid.y, details.grid.z};
  launch.block = {details.block.x, details.block.y, details.block.z};
  launch.shared = details.shared;
  launch.cooperative = call.function->name == "cuLaunchCooperativeKernel";
  launch.parameters = TRY(folder_.add_data(payload->bytes));
  if (!payload->more.empty()) launch.attributes = TRY(folder_.add_data(payload->more));
  return folder_.add(operation);
}

// Nothing: the driver does not know it.
Result<std::optional<abi::ci_kernel>> TapeWriter::about(std::uint64_t handle) {
  auto reply = TRY(thread_.order(abi::CI_KERNEL, handle));
  if (reply.result) return std::optional<abi::ci_kernel>();
  abi::ci_kernel about{};
  std::memcpy(&about, process_.window().data(), sizeof(about));
  return std::optional(about);
}

// What else the program can have launched it by.
Result<std::vector<abi::ci_kernel>> TapeWriter::same_kernels(std::uint64_t handle,
                                                             const abi::ci_kernel& launched) {
  std::vector<abi::ci_kernel> all = {launched};
  std::uint64_t made_of = handles_.kernel(handle);
  std::vector<std::uint64_t> others = handles_.functions(made_of);
  others.push_back(made_of);
  for (std::uint64_t other : others)
    if (auto one = other == handle ? std::nullopt : TRY(about(other))) all.push_back(*one);
  return all;
}

// A function that was made of a library's kernel names a module that the program has not loaded.
Result<std::optional<std::uint32_t>> TapeWriter::module_of(std::uint64_t handle,
                                                           const abi::ci_kernel& launched) {
  auto of = TRY(module(handles_.owner(launched.owner)));
  std::uint64_t made_of = handles_.kernel(handle);
  auto original = of || made_of == handle ? std::nullopt : TRY(about(made_of));
  if (original) of = TRY(module(handles_.owner(original->owner)));
  if (of) return of;
  std::string name(launched.name, strnlen(launched.name, sizeof(launched.name)));
  for (std::uint64_t library : handles_.libraries_with(name)) {
    auto its = TRY(thread_.order(abi::CI_MODULE, library));
    if (!its.result && its.v[0] == launched.owner) return module(library);
  }
  return of;
}

Result<std::uint32_t> TapeWriter::kernel(std::uint64_t handle, const std::string& name,
                                         std::uint32_t shared) {
  std::uint32_t place = TRY(known_kernel(handle, name));
  allow_shared(manifest_.kernels[place], shared);
  return place;
}

Result<std::uint32_t> TapeWriter::known_kernel(std::uint64_t handle, const std::string& name) {
  if (auto known = kernels_.find(handle); known != kernels_.end()) return known->second;
  auto launched = TRY(about(handle));
  bundle::Kernel kernel;
  kernel.name = name;
  std::optional<std::uint32_t> of;
  if (!launched) {
    kernel.refused = "the driver does not say what it is";
  } else {
    kernel.name.assign(launched->name, strnlen(launched->name, sizeof(launched->name)));
    kernel.attributes = attributes_of(TRY(same_kernels(handle, *launched)));
    std::uint32_t count = std::min<std::uint32_t>(launched->parameters, CI_MAX_PARAMETERS);
    for (std::uint32_t i = 0; i < count; i++)
      kernel.parameters.push_back({launched->parameter[i].offset, launched->parameter[i].size});
    kernel.refused = why_not_again(kernel.name);
    of = TRY(module_of(handle, *launched));
  }
  if (!of && !kernel.refused) kernel.refused = "its code was loaded in a way that is not captured";
  if (!of) of = TRY(module(0));
  kernel.module = *of;
  auto place = static_cast<std::uint32_t>(manifest_.kernels.size());
  manifest_.kernels.push_back(std::move(kernel));
  kernels_[handle] = place;
  return place;
}

// Owner 0: an empty image, which refused kernels have.
Result<std::optional<std::uint32_t>> TapeWriter::module(std::uint64_t owner) {
  if (auto known = modules_.find(owner); known != modules_.end()) return known->second;
  std::optional<std::string> code;
  bundle::Module made;
  if (!owner) {
    code = "";
  } else if (const LoadedCode* loaded = handles_.code(owner)) {
    auto payload = process_.payload(loaded->payload);
    if (payload) code = TRY(code_in(*payload));
    if (payload) made.options = options_in(payload->more);
    made.library = loaded->library;
  }
  std::optional<std::uint32_t>& place = modules_[owner];
  if (!code) return std::optional<std::uint32_t>();
  made.image = TRY(folder_.add_image(bundle::kind_of(*code), *code));
  place = static_cast<std::uint32_t>(manifest_.modules.size());
  manifest_.modules.push_back(std::move(made));
  if (owner) placed_.push_back({*place, owner});
  return place;
}

Result<std::optional<std::string>> TapeWriter::code_in(const Payload& payload) {
  constexpr std::uint64_t MAX = std::uint64_t{1} << 30;
  if (payload.state == abi::CI_FILLED) return std::optional(payload.bytes);
  if (payload.state != abi::CI_ELSEWHERE || payload.size > MAX) return std::optional<std::string>();
  Snapshots memory(folder_, process_);
  return std::optional(
      TRY(memory.read(thread_, payload.at, payload.size, bundle::BlockKind::pinned)));
}

// ----- memory

Result<> TapeWriter::add_set(const KeptCall& call) {
  const SizeRule& size = call.function->size;
  bundle::Operation operation = operation_of(call, Action::set);
  bundle::Set& set = operation.set.emplace();
  bool of_rows = size.times >= 0;  // their width times their number
  set.element = size.unit;
  set.to.address = Address{call.word(0)};
  set.to.pitch = of_rows ? call.word(1) : 0;
  set.value = static_cast<std::uint32_t>(call.word(of_rows ? 2 : 1));
  if (set.element < 4) set.value &= (1U << 8 * set.element) - 1;
  set.rows.width = call.word(of_rows ? 3 : 2) * set.element;
  set.rows.height = of_rows ? call.word(4) : 1;
  if (!set.rows.width || !set.rows.height) return ok();
  return folder_.add(operation);
}

Result<> TapeWriter::add_memory(const KeptCall& call) {
  MemoryEffect effect = call.function->memory_effect();
  bool begins = effect == MemoryEffect::alloc || effect == MemoryEffect::map;
  bool ends = effect == MemoryEffect::free || effect == MemoryEffect::unmap;
  const Details& details = call.details;
  // The memory of a handle is there when it is mapped.
  bool has_place = details.ptr && *details.ptr && details.size && *details.size;
  if (!(begins || ends) || !has_place) return ok();
  bundle::Operation operation = operation_of(call, begins ? Action::alloc : Action::free);
  operation.memory = {{*details.ptr},
                      *details.size,
                      call.function->kind == MemoryKind::host      ? bundle::BlockKind::pinned
                      : call.function->kind == MemoryKind::managed ? bundle::BlockKind::managed
                                                                   : bundle::BlockKind::device,
                      0};
  return folder_.add(operation);
}

// ----- order

bool TapeWriter::add_event(const KeptCall& call, bundle::Operation& operation) {
  const Meaning& meaning = call.function->meaning;
  Action action = Action::record;
  if (meaning.event == EventEffect::wait)
    action = Action::wait;
  else if (meaning.event == EventEffect::query ||
           (meaning.work == Work::wait && call.function->op == Op::event))
    action = Action::await;
  else if (meaning.event != EventEffect::record)
    return false;
  if (action == Action::await && call.result != 0) return false;  // it was not done yet
  operation = operation_of(call, action);
  operation.event = event(given_to(call, Role::event));
  return true;
}

bool TapeWriter::add_wait(const KeptCall& call, bundle::Operation& operation) {
  const Function& function = *call.function;
  bool queries = function.meaning.stream == StreamEffect::query;
  if (function.meaning.work != Work::wait && !queries) return false;
  if (queries && call.result != 0) return false;
  bool of_stream = call.details.stream.has_value();
  operation = operation_of(call, of_stream ? Action::sync : Action::drain);
  return true;
}

}  // namespace cudabpf::taping
