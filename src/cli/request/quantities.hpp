// Quantities as a user types them. Pure: the text may be anything.
#pragma once

#include <cstdint>
#include <string>

#include "util/result.hpp"

namespace cudabpf::cli {

// `flag` is what the error calls it.

// "64K", "32M", "1.5G" (1024-based), or plain bytes.
Result<std::uint64_t> parse_size(const std::string& text, const std::string& flag);
// "90", "90s", "500ms", "20us", "15m", "2h", "1d" -> ns.
Result<std::uint64_t> parse_duration(const std::string& text, const std::string& flag);
// For --sample: "100", "20ms", "2s" -> ns; a bare number is of milliseconds.
Result<std::uint64_t> parse_sample_period(const std::string& text);
// A size for --ring-size: a power of two, in which every record fits.
Result<std::uint64_t> parse_ring_size(const std::string& text);

}  // namespace cudabpf::cli
