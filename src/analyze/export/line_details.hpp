// What timelines tell of a call or an operation beside its name and times.
#pragma once

#include <array>
#include <string_view>

#include "analyze/trace/line.hpp"
#include "analyze/trace/names.hpp"

namespace cudabpf::analyze {

enum class Detail : std::uint8_t {
  error,
  ret,
  size,
  kind,
  ptr,
  dst,
  src,
  stream,
  kernel,
  grid,
  block,
  shared,
  device,
  src_device,
  dst_device,
  control,
  object_class,
  status,
  ioctls,
  state,
  id,
};
// By which name: as in the trace.
constexpr std::array<std::string_view, 21> DETAILS = {
    "error",      "ret",     "size",  "kind",   "ptr",    "dst",    "src",
    "stream",     "kernel",  "grid",  "block",  "shared", "device", "src_device",
    "dst_device", "control", "class", "status", "ioctls", "state",  "id"};

// How it ended, where that is not known; empty: it is.
constexpr std::string_view state_of(const Line& line) {
  if (line.unfinished) return "unfinished";
  if (line.return_lost) return "return_lost";
  return line.entry_lost ? "entry_lost" : "";
}

// Shows all that the line tells to `out`: name(), text(), number(), address() and dimensions(),
// each with the Detail. What goes without saying (success, no shared memory) is left out.
template <typename Out>
void details_of(const Line& line, const Names& names, Out&& out) {
  if (line.error)
    out.name(Detail::error, line.error);
  else if (line.ret)
    out.number(Detail::ret, line.ret);
  if (line.has(Field::size)) out.number(Detail::size, line.size);
  if (line.memory) out.name(Detail::kind, line.memory);
  if (line.has(Field::ptr)) out.address(Detail::ptr, line.ptr);
  if (line.has(Field::dst)) out.address(Detail::dst, line.dst);
  if (line.has(Field::src)) out.address(Detail::src, line.src);
  if (line.has(Field::stream)) out.address(Detail::stream, line.stream);
  if (line.kernel) out.name(Detail::kernel, line.kernel);
  if (line.has(Field::grid)) out.dimensions(Detail::grid, line.grid);
  if (line.has(Field::block)) out.dimensions(Detail::block, line.block);
  if (line.shared) out.number(Detail::shared, line.shared);
  if (line.has(Field::ordinal)) out.number(Detail::device, line.ordinal);
  if (line.device) out.name(Detail::device, line.device);
  if (line.has(Field::src_device)) out.number(Detail::src_device, line.src_device);
  if (line.has(Field::dst_device)) out.number(Detail::dst_device, line.dst_device);
  if (line.control) out.name(Detail::control, line.control);
  if (line.object_class) out.name(Detail::object_class, line.object_class);
  if (line.status && names.text(line.status) != "NV_OK") out.name(Detail::status, line.status);
  if (line.ioctls) out.number(Detail::ioctls, line.ioctls);
  if (auto state = state_of(line); !state.empty()) out.text(Detail::state, state);
  if (line.has(Field::id)) out.number(Detail::id, line.id);
}

}  // namespace cudabpf::analyze
