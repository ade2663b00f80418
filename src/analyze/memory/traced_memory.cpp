#include "analyze/memory/traced_memory.hpp"

#include <algorithm>

#include "analyze/circumstances/processes.hpp"
#include "analyze/trace/handles.hpp"

namespace cudabpf::analyze {

static_assert(Names::LIMIT <= BlockTable::MOST_FUNCTIONS);

TracedMemory::TracedMemory(Names& names, LiveMemory::Listener& listener, std::size_t most)
    : import_(names.add("cuMemImportFromShareableHandle")),
      retain_(names.add("cuMemRetainAllocationHandle")),
      live_(listener, most) {
  for (std::size_t i = 0; i < MEMORY_KINDS; i++) kinds_[i] = names.add(MEMORY_KIND_NAMES[i]);
}

void TracedMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { live_.process_gone(process, line.ts); });
  if (line.kind != LineKind::call) return;
  std::uint64_t process = line.process->number;
  if (line.has(Field::ret) && !line.failed()) call(line);
  if (line.context_gone) live_.context_gone(process, line.context_gone, line.end());
  if (!line.has(Field::parent)) live_.outermost_returned(process, line.tid);
}

void TracedMemory::call(const Line& line) {
  auto does = what_does(line);
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

std::optional<MemoryCall::Does> TracedMemory::what_does(const Line& line) const {
  using Does = MemoryCall::Does;
  if (line.name == import_) return Does::import;
  if (line.type != Type::memory) return {};
  if (line.op == Op::alloc) return Does::alloc;
  if (line.op == Op::free) return Does::free;
  if (line.name == retain_) return Does::retain;
  if (kind_of(line) != MemoryKind::vmm) return {};
  if (line.op == Op::map) return Does::map;
  if (line.op == Op::unmap) return Does::unmap;
  return {};
}

MemoryKind TracedMemory::kind_of(const Line& line) const {
  auto at = std::find(kinds_.begin(), kinds_.end(), line.memory);
  return at == kinds_.end() ? MemoryKind::device : static_cast<MemoryKind>(at - kinds_.begin());
}

}  // namespace cudabpf::analyze
