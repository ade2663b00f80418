#include "replay/gpu/copies.hpp"

namespace cudabpf::replay {

namespace {

// The most calls for one copy: no program copies so many rows that need a call each.
constexpr std::uint64_t MAX_CALLS = 1 << 20;
constexpr Status TOO_MANY{"a copy or fill of more rows than a replay does", Status::INVALID_VALUE};

void* host_pointer(DevicePtr at) {
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr): a place on the host
}

Status copy_row(const Driver& driver, std::uint64_t width, const CopySide& to, const CopySide& from,
                Handle stream) {
  if (to.on_host && from.on_host) return {};
  if (to.on_host)
    return driver.copy_to_host_async.status_of(host_pointer(to.at), from.at, width, stream);
  if (from.on_host)
    return driver.copy_to_device_async.status_of(to.at, host_pointer(from.at), width, stream);
  return driver.copy_async.status_of(to.at, from.at, width, stream);
}

PlaneCopy::Side side_of(const CopySide& side) {
  PlaneCopy::Side plane;
  plane.type = side.on_host ? PlaneCopy::ON_HOST : PlaneCopy::ANYWHERE;
  plane.host = side.on_host ? host_pointer(side.at) : nullptr;
  plane.device = side.on_host ? 0 : side.at;
  plane.pitch = side.pitch;
  return plane;
}

CopySide moved(CopySide side, std::uint64_t by) {
  side.at += by;
  return side;
}

Status copy_plane(const Driver& driver, const bundle::Rows& rows, const CopySide& to,
                  const CopySide& from, Handle stream) {
  if (rows.height == 1) return copy_row(driver, rows.width, to, from, stream);
  if (to.pitch >= rows.width && from.pitch >= rows.width) {
    PlaneCopy copy;
    copy.to = side_of(to);
    copy.from = side_of(from);
    copy.width = rows.width;
    copy.height = rows.height;
    return driver.copy_plane_async.status_of(&copy, stream);
  }
  for (std::uint64_t row = 0; row < rows.height; row++)
    if (Status status = copy_row(driver, rows.width, moved(to, row * to.pitch),
                                 moved(from, row * from.pitch), stream);
        !status.succeeded())
      return status;
  return {};
}

Status fill_plane(const Driver& driver, const bundle::Set& set, DevicePtr at, Handle stream) {
  std::size_t width = set.rows.width / set.element, height = set.rows.height;
  auto value_8 = static_cast<unsigned char>(set.value);
  auto value_16 = static_cast<unsigned short>(set.value);  // NOLINT: as the driver has it
  bool is_row = height == 1;
  switch (set.element) {
    case 1:
      return is_row ? driver.fill_8_async.status_of(at, value_8, width, stream)
                    : driver.fill_plane_8_async.status_of(at, set.to.pitch, value_8, width, height,
                                                          stream);
    case 2:
      return is_row ? driver.fill_16_async.status_of(at, value_16, width, stream)
                    : driver.fill_plane_16_async.status_of(at, set.to.pitch, value_16, width,
                                                           height, stream);
    default:
      return is_row ? driver.fill_32_async.status_of(at, set.value, width, stream)
                    : driver.fill_plane_32_async.status_of(at, set.to.pitch, set.value, width,
                                                           height, stream);
  }
}

}  // namespace

Status copy_rows(const Driver& driver, const bundle::Rows& rows, const CopySide& to,
                 const CopySide& from, Handle stream) {
  if (rows.is_empty()) return {};
  if (rows.depth > MAX_CALLS || rows.height > MAX_CALLS * MAX_CALLS ||
      (rows.height > 1 && rows.depth * rows.height > MAX_CALLS &&
       (to.pitch < rows.width || from.pitch < rows.width)))
    return TOO_MANY;
  for (std::uint64_t plane = 0; plane < rows.depth; plane++)
    if (Status status = copy_plane(driver, rows, moved(to, plane * to.slice),
                                   moved(from, plane * from.slice), stream);
        !status.succeeded())
      return status;
  return {};
}

Status fill_rows(const Driver& driver, const bundle::Set& set, DevicePtr at, Handle stream) {
  if (set.rows.is_empty()) return {};
  if (set.rows.depth > MAX_CALLS) return TOO_MANY;
  if (set.rows.width % set.element)
    return {"a fill of a part of an element", Status::INVALID_VALUE};
  for (std::uint64_t plane = 0; plane < set.rows.depth; plane++)
    if (Status status = fill_plane(driver, set, at + plane * set.to.slice, stream);
        !status.succeeded())
      return status;
  return {};
}

}  // namespace cudabpf::replay
