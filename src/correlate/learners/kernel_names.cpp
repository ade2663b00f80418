#include "correlate/learners/kernel_names.hpp"

#include <algorithm>
#include <cctype>

#include "util/demangle/demangle.hpp"
#include "util/text/json.hpp"

namespace cudabpf {

bool plausible_kernel_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
           c == '.' || c == '@';
  });
}

namespace {
std::string shown(KernelNames::ReadName name) {
  return std::string(name.text) + (name.cut ? "…" : "");
}

// Searching for unused names takes long, so it is not done for every new name.
constexpr std::uint64_t REFUSED_AT_ONCE = 4096;

std::size_t bytes_of(const KernelName& name) {
  return sizeof(name) + name.mangled.capacity() + name.full.capacity() +
         name.short_name.capacity() + name.json.capacity();
}
}  // namespace

// If it is not known whether the call succeeded, names are forgotten as if it had: the next launch
// reads them again.
void KernelNames::follow(const Call& call, const Frame& frame) {
  const Function& function = *call.function;
  auto word = [&](std::size_t i) { return i < frame.nwords ? frame.words[i] : 0; };
  if (function.names == NamesEffect::forget) {
    if (function.type == Type::module)
      owner_unloaded(call.pid, word(0), frame.ts);
    else
      context_destroyed(call.pid, frame.ts);
    return;
  }
  if (call.outs.empty()) return;
  // (out handle, module or library, name) or (out function, kernel)
  std::uint64_t ts = frame.ts + call.duration;
  if (function.arguments.size() < 3)
    learned_alias(call.pid, call.outs[0], word(1), ts);
  else if (!frame.has_text)
    forget_handle(call.pid, call.outs[0]);
  else
    learned(call.pid, call.outs[0], {word(1), function.arguments[0].role == Role::function},
            {frame.text, frame.string_cut}, ts);
}

void KernelNames::orphaned(Call& call) {
  if (call.function->names == NamesEffect::learn && !call.outs.empty())
    forget_handle(call.pid, call.outs[0]);
  if (call.function->names == NamesEffect::forget) forget_handles(call.pid);
}

bool KernelNames::want_room() const {
  return refused_ % REFUSED_AT_ONCE == 0 &&
         !(bounds_.has_memory(Kept::kernel_names, names_[0].size() + names_[1].size()) &&
           bounds_.has_memory(Kept::name_bytes, name_bytes_));
}

void KernelNames::forget_unused(const std::unordered_set<const KernelName*>& used) {
  std::unordered_set<const KernelName*> known = used;
  for (const auto& [pid, process] : processes_)
    for (const auto& [handle, entry] : process.handles) known.insert(entry.name);
  for (auto& names : names_)
    std::erase_if(names, [&](const auto& item) {
      if (known.contains(item.second.get())) return false;
      name_bytes_ -= bytes_of(*item.second);
      return true;
    });
  // If few could go, the next search would find few as well.
  bool emptier =
      bounds_.has_memory(Kept::kernel_names, 2 * (names_[0].size() + names_[1].size())) &&
      bounds_.has_memory(Kept::name_bytes, 2 * name_bytes_);
  refused_ = emptier ? 0 : 1;
}

// Null if there is no room.
const KernelName* KernelNames::intern(ReadName name, bool from_handle) {
  std::string mangled = shown(name);
  auto& names = names_[from_handle];
  if (auto known = names.find(mangled); known != names.end()) return known->second.get();
  for (auto [table, used] : {std::pair(Kept::kernel_names, names_[0].size() + names_[1].size()),
                             {Kept::name_bytes, name_bytes_}}) {
    if (bounds_.has_memory(table, used)) continue;
    refused_++;
    bounds_.left_out(table);
    return nullptr;
  }
  auto made = std::make_unique<KernelName>();
  made->full = name.cut ? mangled : demangle(mangled);
  made->short_name = short_name(made->full);
  made->json = json::quoted(made->full);
  made->from_handle = from_handle;
  made->mangled = std::move(mangled);
  name_bytes_ += bytes_of(*made);
  std::string_view key = made->mangled;
  return names.emplace(key, std::move(made)).first->second.get();
}

// A handle without a name is not kept.
void KernelNames::keep(ProcessNames& process, std::uint64_t handle, const Entry& entry) {
  forget(process, handle);
  if (!entry.name) return;
  if (!bounds_.has_memory(Kept::kernel_handles, handles_)) {
    ProcessNames& most = largest_of(processes_);
    bounds_.left_out(Kept::kernel_handles, &most == &process ? 1 : most.size());
    if (&most == &process) return;
    forget_if(most, [](const auto&) { return true; });
  }
  process.handles.emplace(handle, entry);
  handles_++;
}

void KernelNames::forget(ProcessNames& process, std::uint64_t handle) {
  handles_ -= process.handles.erase(handle);
}

template <typename Gone>
void KernelNames::forget_if(ProcessNames& process, Gone&& gone) {
  handles_ -= std::erase_if(process.handles, gone);
}

void KernelNames::process_gone(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  handles_ -= process->second.size();
  processes_.erase(process);
}

void KernelNames::learned(std::uint32_t pid, std::uint64_t handle, Owner owner, ReadName name,
                          std::uint64_t ts) {
  keep(processes_[pid], handle, {intern(name, false), owner, true, ts});
}

void KernelNames::learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of,
                                std::uint64_t ts) {
  ProcessNames& process = processes_[pid];
  auto known = process.handles.find(of);
  if (known == process.handles.end()) return forget(process, handle);
  Entry entry = known->second;
  entry.owner.in_context = true;
  entry.ts = ts;
  keep(process, handle, entry);
}

bool KernelNames::trusts_handles(const ProcessNames& process) const {
  if (process.counts.contradicted > 0) return false;
  // Without evidence of its own, a process is judged by the others: most share one libcuda.
  return process.counts.confirmed > 0 || counts_.contradicted == 0;
}

void KernelNames::read_from_handle(std::uint32_t pid, std::uint64_t handle, ReadName name,
                                   std::uint64_t ts) {
  ProcessNames& process = processes_[pid];
  auto known = process.handles.find(handle);
  if (known != process.handles.end() && known->second.learned) {
    if (name.text.empty()) return;  // it could not be read, which proves nothing
    bool agrees = known->second.name->mangled == shown(name);
    for (KernelNameCounts* counts : {&process.counts, &counts_})
      (agrees ? counts->confirmed : counts->contradicted)++;
    if (agrees) known->second.ts = ts;
    return;
  }
  if (plausible_kernel_name(name.text))
    // Its owner is not known, so the name goes with any that goes away.
    keep(process, handle, {intern(name, true), {0, true}, false, ts});
  else
    forget(process, handle);
}

void KernelNames::forget_handle(std::uint32_t pid, std::uint64_t handle) {
  auto process = processes_.find(pid);
  if (process != processes_.end()) forget(process->second, handle);
}

void KernelNames::owner_unloaded(std::uint32_t pid, std::uint64_t owner, std::uint64_t began) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  // If a handle is still valid, its next launch sends the name again.
  forget_if(process->second, [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.ts < began && (!entry.learned || entry.owner.handle == owner);
  });
}

void KernelNames::context_destroyed(std::uint32_t pid, std::uint64_t began) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  forget_if(process->second, [&](const auto& item) {
    return item.second.ts < began && item.second.owner.in_context;
  });
}

void KernelNames::forget_handles(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process != processes_.end()) forget_if(process->second, [](const auto&) { return true; });
}

const KernelName* KernelNames::find(std::uint32_t pid, std::uint64_t handle) const {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return nullptr;
  auto entry = process->second.handles.find(handle);
  if (entry == process->second.handles.end()) return nullptr;
  if (!entry->second.learned && !trusts_handles(process->second)) return nullptr;
  return entry->second.name;
}

}  // namespace cudabpf
