// Copies and fills of rows, which may lie apart, by the driver's functions for that.
#pragma once

#include <cstdint>

#include "bundle/tape.hpp"
#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

struct CopySide {
  DevicePtr at = 0;
  bool on_host = false;
  std::uint64_t pitch = 0, slice = 0;
};

Status copy_rows(const Driver& driver, const bundle::Rows& rows, const CopySide& to,
                 const CopySide& from, Handle stream);
Status fill_rows(const Driver& driver, const bundle::Set& set, DevicePtr at, Handle stream);

}  // namespace cudabpf::replay
