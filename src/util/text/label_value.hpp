// Values of metrics' labels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cudabpf {

// As much of a foreign text as a label's value may have: valid UTF-8 of at most this many bytes.
// What is not UTF-8 becomes U+FFFD.
inline constexpr std::size_t MAX_LABEL_BYTES = 128;
std::string label_value(std::string_view text);

}  // namespace cudabpf
