#include "correlate/kernel_names.hpp"

#include <algorithm>
#include <cctype>

#include "util/demangle.hpp"
#include "util/json_text.hpp"

namespace cudabpf {

bool plausible_kernel_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' ||
           c == '.' || c == '@';
  });
}

const KernelName* KernelNames::intern(std::string_view mangled, bool from_handle) {
  auto& slot = names_[from_handle][std::string(mangled)];
  if (!slot) {
    slot = std::make_unique<KernelName>();
    slot->mangled = mangled;
    slot->full = demangle(mangled);
    slot->short_name = short_name(slot->full);
    append_json_string(slot->json, slot->full);
    slot->from_handle = from_handle;
  }
  return slot.get();
}

void KernelNames::learned(std::uint32_t pid, std::uint64_t handle, std::uint64_t owner,
                          std::string_view name) {
  bool is_function = owner == 0;
  processes_[pid].handles[handle] = {intern(name, false), owner, true, is_function};
}

void KernelNames::learned_alias(std::uint32_t pid, std::uint64_t handle, std::uint64_t of) {
  auto& handles = processes_[pid].handles;
  auto known = handles.find(of);
  if (known == handles.end()) return;
  Entry entry = known->second;
  entry.dies_with_context = true;
  handles[handle] = entry;
}

bool KernelNames::trusts_handles(const ProcessNames& process) const {
  if (process.contradicted > 0) return false;
  // Without evidence of its own, a process is judged by the others: they mostly share a libcuda.
  return process.confirmed > 0 || contradicted_ == 0;
}

void KernelNames::read_from_handle(std::uint32_t pid, std::uint64_t handle, std::string_view name) {
  ProcessNames& process = processes_[pid];
  auto known = process.handles.find(handle);
  if (known != process.handles.end() && known->second.learned) {
    bool agrees = known->second.name->mangled == name;
    (agrees ? process.confirmed : process.contradicted)++;
    (agrees ? confirmed_ : contradicted_)++;
    return;
  }
  if (plausible_kernel_name(name))
    process.handles[handle] = {intern(name, true), 0, false, true};
  else if (known != process.handles.end())
    process.handles.erase(known);
}

void KernelNames::owner_unloaded(std::uint32_t pid, std::uint64_t owner) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  // Handles read, not learned, have no known owner; a launch of one that is still valid sends its
  // name again.
  std::erase_if(process->second.handles, [&](const auto& item) {
    return !item.second.learned || item.second.owner == owner;
  });
}

void KernelNames::context_destroyed(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  std::erase_if(process->second.handles,
                [](const auto& item) { return item.second.dies_with_context; });
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
