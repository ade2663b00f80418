// Spoils JSON: each value in it is replaced by values that cannot be there.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace cudabpf {

// Values of each type, and numbers at the end of what any type can hold.
inline std::vector<nlohmann::json> values_of_all_types() {
  return {nullptr,
          true,
          "text",
          "",
          1.5,
          1e300,
          -1,
          std::numeric_limits<std::int64_t>::min(),
          nlohmann::json::array(),
          nlohmann::json::array({{{"no", "such"}}, nullptr, {1}}),
          nlohmann::json::object(),
          nlohmann::json::object({{"no", "such"}})};
}

// Shows the whole with each member, also of members, of another type, and the whole without it.
inline void each_wrong_type(
    const nlohmann::json& whole,
    const std::function<void(const std::string& path, const std::string& wrong,
                             const std::string& without)>& see) {
  const nlohmann::json flat = whole.flatten();
  std::set<std::string> seen;
  for (const auto& [path, value] : flat.items()) {
    nlohmann::json::json_pointer at(path);
    for (; !at.empty(); at = at.parent_pointer()) {
      if (whole.at(at.parent_pointer()).is_array()) continue;
      if (!seen.insert(at.to_string()).second) continue;  // above another one, too
      auto type = whole.at(at).type();
      nlohmann::json changed = whole;
      changed.at(at.parent_pointer()).erase(at.back());
      std::string without = changed.dump();
      for (const auto& value_there : values_of_all_types()) {
        if (value_there.type() == type) continue;
        changed[at] = value_there;
        see(at.to_string() + " = " + value_there.dump(), changed.dump(), without);
      }
    }
  }
}

}  // namespace cudabpf
