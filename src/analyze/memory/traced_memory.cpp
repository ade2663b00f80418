#include "analyze/memory/traced_memory.hpp"

#include <algorithm>

#include "analyze/circumstances/processes.hpp"
#include "analyze/trace/handles.hpp"
#include "follow/memory_effect.hpp"

namespace cudabpf::analyze {

static_assert(Names::LIMIT <= BlockTable::MOST_FUNCTIONS);

TracedMemory::TracedMemory(Names& names, LiveMemory::Listener& listener, std::size_t most)
    : import_(names.add(IMPORTS_MEMORY)),
      retain_(names.add(RETAINS_MEMORY)),
      live_(listener, most) {
  for (std::size_t i = 0; i < MEMORY_KINDS; i++) kinds_[i] = names.add(MEMORY_KIND_NAMES[i]);
}

void TracedMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { live_.process_gone(process, line.ts); });
  if (line.kind != LineKind::call) return;
  std::uint64_t process = line.process->number;
  if (line.has(Field::ret) && !line.failed() && !line.recorded) call(line);
  if (line.context_gone) live_.context_gone(process, line.context_gone, line.end());
  if (!line.has(Field::parent)) live_.outermost_returned(process, line.tid);
}

void TracedMemory::call(const Line& line) {
  auto does = memory_effect(line, line.name == import_, line.name == retain_,
                            [&] { return kind_of(line) == MemoryKind::vmm; });
  if (!does) return;
  MemoryCall call;
  call.does = *does;
  call.kind = kind_of(line);
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
  if (*does == MemoryCall::Does::import) call.handle = handle_in(line.args, "handle");
  if (line.has(Field::size)) call.size = line.size;
  live_.call(call);
}

MemoryKind TracedMemory::kind_of(const Line& line) const {
  auto at = std::find(kinds_.begin(), kinds_.end(), line.memory);
  return at == kinds_.end() ? MemoryKind::device : static_cast<MemoryKind>(at - kinds_.begin());
}

}  // namespace cudabpf::analyze
