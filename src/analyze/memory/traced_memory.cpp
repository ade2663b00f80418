#include "analyze/memory/traced_memory.hpp"

#include <algorithm>

#include "analyze/derived/processes.hpp"
#include "analyze/derived/python_places.hpp"
#include "analyze/work.hpp"
#include "trace/read/handles.hpp"

namespace cudabpf::analyze {

static_assert(Names::LIMIT <= BlockTable::MAX_FUNCTIONS);

TracedMemory::TracedMemory(Names& names, LiveMemory::Listener& listener, std::size_t most)
    : live_(listener, most) {
  for (const Function& function : cuda_functions())
    if (function.memory != MemoryEffect::none)
      by_name_.emplace_back(names.add(function.name), function.memory);
  for (std::size_t i = 0; i < MEMORY_KINDS; i++) kinds_[i] = names.add(MEMORY_KIND_NAMES[i]);
}

void TracedMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { live_.process_gone(process, line.ts); });
  if (line.kind != LineKind::call) return;
  std::uint64_t process = line.process->number;
  if (line.has(Field::ret) && !line.failed() && !line.captured) call(line);
  if (line.context_gone) live_.context_gone(process, line.context_gone, line.end());
  if (is_counted(line)) live_.outermost_returned(process, line.tid);
}

MemoryEffect TracedMemory::effect_of(const Line& line) const {
  for (auto [name, effect] : by_name_)
    if (line.name == name) return effect;
  return line.meaning->memory;
}

void TracedMemory::call(const Line& line) {
  MemoryEffect effect = effect_of(line);
  if (effect == MemoryEffect::none) return;
  MemoryKind kind = kind_of(line);
  if (!concerns_live_memory(effect, kind)) return;
  MemoryCall call;
  call.does = effect;
  call.kind = kind;
  call.entry_lost = line.entry_lost;
  call.process = line.process->number;
  call.pid = line.pid;
  call.tid = line.tid;
  call.function = line.name.id;
  call.id = line.id;
  call.parent = line.parent;
  call.ts = line.ts;
  call.end = line.end();
  call.context = line.context;
  if (line.has(Field::ptr)) call.ptr = line.ptr;
  if (line.has(Field::handle)) call.handle = line.handle;
  if (effect == MemoryEffect::import) call.handle = handle_in(line.args, "handle");
  if (line.has(Field::size)) call.size = line.size;
  if (effect == MemoryEffect::alloc) call.origin = origin_of(line);
  live_.call(call);
}

std::uint32_t TracedMemory::origin_of(const Line& line) {
  MemoryOrigin origin{
      line.holder, line.python ? line.python->line : Name{}, line.process->comm, {}};
  if (line.has(Field::ordinal)) origin.gpu = line.ordinal;
  std::tuple key(origin.holder.id, origin.line.id, origin.comm.id, origin.gpu.value_or(-1));
  auto known = origin_numbers_.find(key);
  if (known != origin_numbers_.end()) return known->second;
  if (origins_.size() == MAX_ORIGINS) return 0;
  auto number = static_cast<std::uint32_t>(origins_.size());
  origins_.push_back(origin);
  origin_numbers_[key] = number;
  return number;
}

MemoryKind TracedMemory::kind_of(const Line& line) const {
  auto at = std::find(kinds_.begin(), kinds_.end(), line.memory);
  return at == kinds_.end() ? MemoryKind::device : static_cast<MemoryKind>(at - kinds_.begin());
}

}  // namespace cudabpf::analyze
