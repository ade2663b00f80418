#include "util/text/json_text.hpp"

namespace cudabpf {

nlohmann::json parsed(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

}  // namespace cudabpf
