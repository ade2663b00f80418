// The file that `merge` writes.
#pragma once

#include <cstdint>
#include <string>

#include "merge/merger.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

// Writes all lines, compressed if the path ends in .zst; "-": standard output. What could not be
// written whole is removed. Returns the file's size.
Result<std::uint64_t> write_merge(merge::Merger& merger, const std::string& path);

}  // namespace cudabpf::cli
