#include "correlate/kernel_names.hpp"

#include <algorithm>
#include <cctype>

#include "util/demangle.hpp"
#include "util/json.hpp"

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
}  // namespace

const KernelName* KernelNames::intern(ReadName name, bool from_handle) {
  std::string mangled = shown(name);
  auto& slot = names_[from_handle][mangled];
  if (!slot) {
    slot = std::make_unique<KernelName>();
    slot->full = name.cut ? mangled : demangle(mangled);
    slot->short_name = short_name(slot->full);
    slot->json = json::quoted(slot->full);
    slot->from_handle = from_handle;
    slot->mangled = std::move(mangled);
  }
  return slot.get();
}

void KernelNames::learned(std::uint32_t pid, std::uint64_t handle, Owner owner, ReadName name,
                          std::uint64_t ts) {
  processes_[pid].handles[handle] = {intern(name, false), owner, true, ts};
}

void KernelNames::learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of,
                                std::uint64_t ts) {
  auto& handles = processes_[pid].handles;
  auto known = handles.find(of);
  if (known == handles.end()) {
    handles.erase(handle);
    return;
  }
  Entry entry = known->second;
  entry.owner.in_context = true;
  entry.ts = ts;
  handles[handle] = entry;
}

bool KernelNames::trusts_handles(const ProcessNames& process) const {
  if (process.contradicted > 0) return false;
  // Without evidence of its own, a process is judged by the others: they mostly share a libcuda.
  return process.confirmed > 0 || contradicted_ == 0;
}

void KernelNames::read_from_handle(std::uint32_t pid, std::uint64_t handle, ReadName name,
                                   std::uint64_t ts) {
  ProcessNames& process = processes_[pid];
  auto known = process.handles.find(handle);
  if (known != process.handles.end() && known->second.learned) {
    if (name.text.empty()) return;  // could not be read, which says nothing
    bool agrees = known->second.name->mangled == shown(name);
    (agrees ? process.confirmed : process.contradicted)++;
    (agrees ? confirmed_ : contradicted_)++;
    if (agrees) known->second.ts = ts;
    return;
  }
  if (plausible_kernel_name(name.text))
    // Of what owner is not known: any that goes may be it.
    process.handles[handle] = {intern(name, true), {0, true}, false, ts};
  else if (known != process.handles.end())
    process.handles.erase(known);
}

void KernelNames::forget_handle(std::uint32_t pid, std::uint64_t handle) {
  auto process = processes_.find(pid);
  if (process != processes_.end()) process->second.handles.erase(handle);
}

void KernelNames::owner_unloaded(std::uint32_t pid, std::uint64_t owner, std::uint64_t began) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  // A launch of a handle that is still valid sends its name again.
  std::erase_if(process->second.handles, [&](const auto& item) {
    const Entry& entry = item.second;
    return entry.ts < began && (!entry.learned || entry.owner.handle == owner);
  });
}

void KernelNames::context_destroyed(std::uint32_t pid, std::uint64_t began) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  std::erase_if(process->second.handles, [&](const auto& item) {
    return item.second.ts < began && item.second.owner.in_context;
  });
}

void KernelNames::forget_handles(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process != processes_.end()) process->second.handles.clear();
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
