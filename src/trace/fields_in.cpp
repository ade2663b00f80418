#include "trace/fields_in.hpp"

#include <limits>

namespace cudabpf {

std::uint64_t time_in(const nlohmann::json& object, const char* key, std::int64_t unit) {
  auto time = number_in<std::int64_t>(object, key).value_or(0);
  constexpr std::int64_t LATEST = std::numeric_limits<std::int64_t>::max();
  return time > 0 && time <= LATEST / unit ? static_cast<std::uint64_t>(time * unit) : 0;
}

std::optional<std::uint64_t> count_in(const nlohmann::json& object, const char* key) {
  return number_in<std::uint64_t>(object, key);
}

RankVariables rank_in(const nlohmann::json& object) {
  RankVariables rank;
  const nlohmann::json* json = member_of(object, "rank");
  if (!json || !json->is_object()) return rank;
  for (std::string_view name : RANK_VARIABLES)
    if (auto value = number_in<std::uint32_t>(*json, std::string(name).c_str()))
      rank.emplace_back(name, *value);
  return rank;
}

std::optional<Accounts> accounts_in(const nlohmann::json& accounts) {
  auto entered = count_in(accounts, "entered"), emitted = count_in(accounts, "emitted"),
       dropped = count_in(accounts, "dropped"), received = count_in(accounts, "received");
  if (!entered || !emitted || !dropped || !received) return std::nullopt;
  return Accounts{*entered, *emitted, *dropped, *received};
}

std::map<std::string, std::uint64_t> losses_in(const nlohmann::json& object) {
  std::map<std::string, std::uint64_t> losses;
  const nlohmann::json* json = member_of(object, "losses");
  if (!json || !json->is_object()) return losses;
  for (const auto& [reason, count] : json->items())
    if (count.is_number_unsigned() && count.get<std::uint64_t>())
      losses.emplace(reason, count.get<std::uint64_t>());
  return losses;
}

}  // namespace cudabpf
