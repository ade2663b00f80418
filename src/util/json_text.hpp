// Text as JSON strings. What comes from a traced program may hold any bytes: control characters are
// escaped, and what is not UTF-8 becomes U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

void append_json_string(std::string& out, std::string_view text);  // quotes included

}  // namespace cudabpf
