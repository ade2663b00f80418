// Text for terminals whose locale has no UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

// As wide as the text. What pages are drawn and written with has a likeness; all else is a ?.
std::string in_ascii(std::string_view text);

}  // namespace cudabpf
