// Spoils JSON: each value in it is replaced by values that cannot be there.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
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
    const std::function<void(const std::string& path, const nlohmann::json& wrong,
                             const nlohmann::json& without)>& see) {
  const nlohmann::json flat = whole.flatten();
  for (const auto& [path, value] : flat.items()) {
    nlohmann::json::json_pointer at(path);
    for (; !at.empty(); at = at.parent_pointer()) {
      const auto& right = whole.at(at);
      if (whole.at(at.parent_pointer()).is_array()) continue;
      nlohmann::json without = whole;
      without.at(at.parent_pointer()).erase(at.back());
      for (const auto& value_there : values_of_all_types()) {
        if (value_there.type() == right.type()) continue;
        nlohmann::json wrong = whole;
        wrong[at] = value_there;
        see(at.to_string() + " = " + value_there.dump(), wrong, without);
      }
    }
  }
}

}  // namespace cudabpf
