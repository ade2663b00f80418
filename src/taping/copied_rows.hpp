// From where to where rows are copied, as a struct ci_rows says it. What the process wrote is
// hostile.
#pragma once

#include <string_view>

#include "bundle/tape.hpp"
#include "util/result.hpp"

namespace cudabpf::taping {

struct CopiedRows {
  bundle::Rows rows;
  bundle::Place from, to;
  bool from_host = false, to_host = false;
};

// An error says why it cannot be run again: "is of an array".
Result<CopiedRows> copied_rows(std::string_view given);

}  // namespace cudabpf::taping
