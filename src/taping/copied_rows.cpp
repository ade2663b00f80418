#include "taping/copied_rows.hpp"

#include <algorithm>
#include <cstring>

#include "cudabpf/taping.h"

namespace cudabpf::taping {

namespace {

// Distances only where there are several rows: others say nothing.
bundle::Place place_of(const abi::ci_rows_side& side, const bundle::Rows& rows) {
  std::uint64_t pitch = side.pitch ? side.pitch : rows.width;
  std::uint64_t slice = pitch * (side.height ? side.height : rows.height);
  std::uint64_t base = side.type == abi::CI_ON_HOST ? side.host : side.device;
  bundle::Place place;
  place.address = {base + side.z * slice + side.y * pitch + side.x};
  if (rows.height > 1 || rows.depth > 1) place.pitch = pitch;
  if (rows.depth > 1) place.slice = slice;
  return place;
}

}  // namespace

Result<CopiedRows> copied_rows(std::string_view given) {
  abi::ci_rows wanted{};
  std::memcpy(&wanted, given.data(), std::min(sizeof(wanted), given.size()));
  CopiedRows copied;
  copied.rows = {wanted.width, wanted.height, wanted.depth};
  if (copied.rows.is_empty()) return copied;
  for (auto [side, place] :
       {std::pair(&wanted.from, &copied.from), std::pair(&wanted.to, &copied.to)}) {
    if (side->type != abi::CI_ON_HOST && side->type != abi::CI_ON_DEVICE)
      return Error{"is of an array", {}};
    *place = place_of(*side, copied.rows);
    if (!bundle::is_place(copied.rows, *place)) return Error{"has no range of addresses", {}};
  }
  copied.from_host = wanted.from.type == abi::CI_ON_HOST;
  copied.to_host = wanted.to.type == abi::CI_ON_HOST;
  return copied;
}

}  // namespace cudabpf::taping
