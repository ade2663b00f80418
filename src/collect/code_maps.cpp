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

void CodeMaps::make_room(OfProcess& of, std::size_t more, std::uint64_t ts) {
  if (of.code.size() + more <= MAX_MAPPINGS) return;  // more than any program has
  of = {};
  of.forgotten_until = ts;
}

void CodeMaps::mapped(MappedCode code) {
  OfProcess* of = process(code.pid);
  if (!of) return;
  make_room(*of, 1, code.ts);
  of->code.push_back(std::move(code));
}

void CodeMaps::looked_through(std::uint32_t pid, const std::vector<Mapping>& maps,
                              std::uint64_t ts) {
  OfProcess* of = process(pid);
  if (!of) return;
  of->whole_since = NEVER;
  if (maps.empty()) return;  // what it had mapped until it ended is kept, for what comes now
  std::vector<MappedCode> found;
  for (const Mapping& mapping : maps)
    if (mapping.executable() && found.size() < MAX_MAPPINGS / 2)
      found.push_back({ts, pid, mapping.start, mapping.end, mapping.offset,
                       makedev(mapping.major, mapping.minor), mapping.inode, mapping.path});
  make_room(*of, found.size(), ts);
  of->code.insert(of->code.end(), found.begin(), found.end());
  of->whole_since = ts;
}

// A parent that was looked through only later does not say what the child has of it.
void CodeMaps::forked(std::uint32_t parent, std::uint32_t child, std::uint64_t ts) {
  OfProcess copy;
  if (auto from = processes_.find(parent); from != processes_.end()) copy = from->second;
  if (copy.whole_since > ts) copy = {};
  std::erase_if(copy.code, [&](const MappedCode& code) { return code.ts > ts; });
  OfProcess* of = process(child);
  if (!of) return;
  std::erase_if(of->code, [&](const MappedCode& code) { return code.ts <= ts; });
  copy.code.insert(copy.code.end(), of->code.begin(), of->code.end());
  *of = std::move(copy);
}

// The new program's own file was mapped just before this was reported.
void CodeMaps::executed(std::uint32_t pid, std::uint64_t ts) {
  OfProcess* of = process(pid);
  if (of && ts >= std::max(lost_until_, of->forgotten_until)) of->whole_since = ts;
}

void CodeMaps::lost(std::uint64_t ts) {
  processes_.clear();
  lost_until_ = ts;
}

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
