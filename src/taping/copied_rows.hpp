// From where to where rows are copied, as a struct ci_rows says it. What the process wrote is
// hostile.
#pragma once

#include <cstdint>
#include <string_view>

#include "bundle/tape.hpp"
#include "util/result.hpp"

namespace cudabpf::taping {

bool is_empty(const bundle::Rows& rows);
// From the first byte to the last; 0: more than there can be.
std::uint64_t extent_of(const bundle::Rows& rows, const bundle::Place& place);
// Whether all rows lie where memory can.
bool is_memory(const bundle::Rows& rows, const bundle::Place& place);

struct CopiedRows {
  bundle::Rows rows;
  bundle::Place from, to;
  bool from_host = false, to_host = false;
};

// An error says why it cannot be run again: "is of an array".
Result<CopiedRows> copied_rows(std::string_view given);

}  // namespace cudabpf::taping
