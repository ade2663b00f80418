// Text for terminals whose locale has no UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace cudabpf {

// As wide as the text. Characters of pages get a similar one; any other becomes a ?.
std::string in_ascii(std::string_view text);

}  // namespace cudabpf
