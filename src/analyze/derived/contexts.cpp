#include "analyze/derived/contexts.hpp"

#include <algorithm>

#include "analyze/derived/processes.hpp"
#include "trace/read/handles.hpp"

namespace cudabpf::analyze {

Contexts::Contexts(Names& names) {
  for (const Function& function : cuda_functions()) {
    if (function.context == ContextEffect::none) continue;
    Name name = names.add(function.name);  // its versions are alike
    if (functions_.empty() || functions_.back().first != name)
      functions_.emplace_back(name, &function);
  }
}

void Contexts::follow(Line& line) {
  each_emptied(line, [this](std::uint64_t process) { current_.process_gone(process); });
  if (line.kind != LineKind::call) return;
  line.context = current_.current(line.process->number, line.tid);
  if (line.type != Type::context && line.type != Type::graphics) return;
  if (!line.has(Field::ret) || line.failed()) return;
  auto at = std::find_if(functions_.begin(), functions_.end(),
                         [&](const auto& one) { return one.first == line.name; });
  if (at == functions_.end()) return;
  const Function& function = *at->second;
  ContextCall call;
  call.effect = function.context;
  call.process = line.process->number;
  call.tid = line.tid;
  call.seen_begin = line.process->seen_begin;
  if (const Argument* argument = context_argument(function))
    call.context = handle_in(line.args, argument->name);
  if (line.has(Field::ordinal)) call.device = line.ordinal;
  line.context_gone = current_.change(call);
}

}  // namespace cudabpf::analyze
