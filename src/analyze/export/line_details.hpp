// What timelines say about a call or an operation besides its name and times.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

#include "analyze/derived/python_places.hpp"
#include "analyze/export/track_writer.hpp"
#include "analyze/work.hpp"
#include "trace/read/line.hpp"
#include "trace/read/names.hpp"

namespace cudabpf::analyze {

// Expands to its arguments for the fields that line_fields.def shows in timelines.
#define DETAIL_nowhere(...)
#define DETAIL_column(...)
#define DETAIL_detail(...) __VA_ARGS__
#define DETAIL_unusual(...) __VA_ARGS__

// Those fields, and a few that are written in ways of their own.
enum class Detail : std::uint8_t {
  error,
  ret,
#define NUMBER(key, member, type, read, shown) DETAIL_##shown(member, )
#define NAME(key, member, shown) DETAIL_##shown(member, )
#include "trace/read/line_fields.def"
  state,
  captured,
  kernel_names,
  id,
  function,
  call,
  queue,
  node,
  unjoined,
  queued,
  communicator,
  seq,
  call_group,
  collective,
  collectives,
  collective_size,
  python,
};
// Their names, as in the trace.
constexpr std::string_view DETAILS[] = {
    "error",      "ret",
#define NUMBER(key, member, type, read, shown) DETAIL_##shown(#key, )
#define NAME(key, member, shown) DETAIL_##shown(#key, )
#include "trace/read/line_fields.def"
    "state",      "captured",   "kernel_names", "id",
    "function",   "call",       "queue",        "node",
    "unjoined",   "queued_ns",  "communicator", "seq",
    "call_group", "collective", "collectives",  "collective_size",
    "python"};
static_assert(std::size(DETAILS) == static_cast<std::size_t>(Detail::python) + 1);

// What asked for it: a collective, or several that ran together.
template <typename Out>
void collective_details_of(const AskedCollective& collective, Out&& out) {
  if (!collective.op) return;
  if (collective.together > 1) return out.number(Detail::collectives, collective.together);
  out.name(Detail::collective, collective.op);
  if (collective.size) out.number(Detail::collective_size, collective.size);
  if (collective.communicator) out.number(Detail::communicator, collective.communicator);
  if (collective.seq) out.number(Detail::seq, collective.seq);
}

// Passes all that the line says, which kernels run because of it, and how long work was queued, to
// name(), text(), number(), address() and dimensions() of `out`, each with its Detail. What goes
// without saying (success, no shared memory) is left out.
template <typename Out>
void details_of(const Line& line, const Names& names, std::string_view kernels,
                std::optional<std::uint64_t> queued, Out&& out) {
  if (line.error)
    out.name(Detail::error, line.error);
  else if (line.ret)
    out.number(Detail::ret, line.ret);

#define SHOW_whole number
#define SHOW_address address
#define SHOW_dimensions dimensions
#define IS_SHOWN_detail(there, value) there
#define IS_SHOWN_unusual(there, value) is_unusual(value)
  auto is_unusual = [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Name>)
      return value && names.text(value) != "NV_OK";
    else
      return value != 0;
  };
#define NUMBER(key, member, type, read, shown)                               \
  DETAIL_##shown(if (IS_SHOWN_##shown(line.has(Field::member), line.member)) \
                     out.SHOW_##read(Detail::member, line.member);)
#define NAME(key, member, shown)                                 \
  DETAIL_##shown(if (IS_SHOWN_##shown(line.member, line.member)) \
                     out.name(Detail::member, line.member);)
#include "trace/read/line_fields.def"
#undef SHOW_whole
#undef SHOW_address
#undef SHOW_dimensions
#undef IS_SHOWN_detail
#undef IS_SHOWN_unusual

  if (auto state = line.state(); !state.empty()) out.text(Detail::state, state);
  if (line.work == Work::recorded) out.text(Detail::captured, "into a graph");
  if (!kernels.empty()) out.text(Detail::kernel_names, kernels);
  if (line.has(Field::id)) out.number(Detail::id, line.id);
  if (is_named_by_kernel(line) && line.name) out.name(Detail::function, line.name);
  if (line.python) out.name(Detail::python, line.python->line);
  if (line.has(Field::communicator)) out.number(Detail::communicator, line.communicator);
  if (line.has(Field::seq)) out.number(Detail::seq, line.seq);
  if (line.has(Field::call_group)) out.number(Detail::call_group, line.call_group);
  if (line.kind != LineKind::gpu_operation) return;
  collective_details_of(line.collective, out);
  if (line.has(Field::call)) out.number(Detail::call, line.call);
  if (line.has(Field::queue)) out.number(Detail::queue, line.queue);
  if (line.has(Field::node)) out.number(Detail::node, line.node);
  if (line.unjoined) out.name(Detail::unjoined, line.unjoined);
  if (queued) out.number(Detail::queued, *queued);
}

#undef DETAIL_nowhere
#undef DETAIL_column
#undef DETAIL_detail
#undef DETAIL_unusual

}  // namespace cudabpf::analyze
