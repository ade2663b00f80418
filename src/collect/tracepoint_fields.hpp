// Where the fields of one of the kernel's tracepoints lie.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cudabpf {

// Their offsets, by their names.
using TracepointFields = std::map<std::string, std::uint16_t>;

// From the text of its `format` in tracefs, with a line a field:
// "\tfield:__data_loc char[] dev;\toffset:8;\tsize:4;\tsigned:0;".
TracepointFields parse_tracepoint_fields(const std::string& text);

}  // namespace cudabpf
