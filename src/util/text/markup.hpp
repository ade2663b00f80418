// Text in XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

// Text between tags, or in quotes as an attribute. It has to be printable already.
std::string as_markup(std::string_view text);

}  // namespace cudabpf
