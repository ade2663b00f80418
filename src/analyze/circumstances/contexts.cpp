#include "analyze/circumstances/contexts.hpp"

#include <algorithm>

#include "analyze/circumstances/processes.hpp"
#include "analyze/trace/handles.hpp"

namespace cudabpf::analyze {

Contexts::Contexts(Names& names) {
  for (const ContextFunction& function : context_functions())
    functions_.push_back(names.add(function.name));
}

void Contexts::follow(Line& line) {
  each_emptied(line, [this](std::uint64_t process) { current_.process_gone(process); });
  if (line.kind != LineKind::call) return;
  line.context = current_.current(line.process->number, line.tid);
  if (line.type != Type::context || !line.has(Field::ret) || line.failed()) return;
  auto at = std::find(functions_.begin(), functions_.end(), line.name);
  if (at == functions_.end()) return;
  const ContextFunction& function =
      context_functions()[static_cast<std::size_t>(at - functions_.begin())];
  ContextCall call;
  call.change = function.change;
  call.process = line.process->number;
  call.tid = line.tid;
  call.seen_begin = line.process->seen_begin;
  if (!function.context.empty()) call.context = handle_in(line.args, function.context);
  if (line.has(Field::ordinal)) call.device = line.ordinal;
  line.context_gone = current_.change(call);
}

}  // namespace cudabpf::analyze
