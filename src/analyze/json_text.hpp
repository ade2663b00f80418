// Texts in JSON that somebody else may have written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cudabpf::analyze {

// Empty: there is none of that name, or it is something else.
template <typename Json>
std::string text_in(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->template get<std::string>() : std::string();
}

}  // namespace cudabpf::analyze
