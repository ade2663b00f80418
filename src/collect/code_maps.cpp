#include "collect/code_maps.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

namespace cudabpf {

CodeMaps::OfProcess* CodeMaps::process(std::uint32_t pid) {
  auto known = processes_.find(pid);
  if (known != processes_.end()) return &known->second;
  return processes_.size() < MAX_PROCESSES ? &processes_[pid] : nullptr;
}

void CodeMaps::mapped(MappedCode code) {
  OfProcess* of = process(code.pid);
  if (!of) return;
  if (of->code.size() == MAX_MAPPINGS) *of = {};  // more than any program has: it is looked through
  of->code.push_back(std::move(code));
}

void CodeMaps::looked_through(std::uint32_t pid, const std::vector<Mapping>& maps,
                              std::uint64_t ts) {
  OfProcess* of = process(pid);
  if (!of) return;
  if (maps.empty()) {  // it has ended: an exec that is still to be reported makes it known again
    of->whole_since = NEVER;
    return;
  }
  std::erase_if(of->code, [&](const MappedCode& code) { return code.ts <= ts; });
  std::vector<MappedCode> found;
  for (const Mapping& mapping : maps)
    if (mapping.executable() && found.size() < MAX_MAPPINGS / 2)
      found.push_back({0, pid, mapping.start, mapping.end, mapping.offset,
                       makedev(mapping.major, mapping.minor), mapping.inode, mapping.path});
  of->code.insert(of->code.begin(), found.begin(), found.end());
  of->whole_since = ts;
}

void CodeMaps::forked(std::uint32_t parent, std::uint32_t child, std::uint64_t ts) {
  OfProcess copy;
  if (auto from = processes_.find(parent); from != processes_.end()) copy = from->second;
  std::erase_if(copy.code, [&](const MappedCode& code) { return code.ts > ts; });
  OfProcess* of = process(child);
  if (!of) return;
  std::erase_if(of->code, [&](const MappedCode& code) { return code.ts <= ts; });
  copy.code.insert(copy.code.end(), of->code.begin(), of->code.end());
  *of = std::move(copy);
}

// The new program's own file was mapped just before this was reported.
void CodeMaps::executed(std::uint32_t pid, std::uint64_t ts) {
  if (OfProcess* of = process(pid)) of->whole_since = ts;
}

void CodeMaps::lost() { processes_.clear(); }

bool CodeMaps::knows(std::uint32_t pid) const {
  auto known = processes_.find(pid);
  return known != processes_.end() && known->second.whole_since != NEVER;
}

const MappedCode* CodeMaps::at(std::uint32_t pid, std::uint64_t address, std::uint64_t ts) const {
  auto known = processes_.find(pid);
  if (known == processes_.end() || ts < known->second.whole_since) return nullptr;
  const MappedCode* last = nullptr;
  for (const MappedCode& code : known->second.code)
    if (code.ts <= ts && code.from <= address && address < code.to &&
        (!last || code.ts >= last->ts))
      last = &code;
  return last;
}

}  // namespace cudabpf
