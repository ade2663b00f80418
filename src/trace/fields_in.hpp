// Reads what several of a trace's first and last lines have, which may be from any program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf {

// ns that may be added to others; 0: not known.
std::uint64_t time_in(const nlohmann::json& object, const char* key, std::int64_t unit = 1);
std::optional<std::uint64_t> count_in(const nlohmann::json& object, const char* key);
RankVariables rank_in(const nlohmann::json& object);
// Nothing: one of the four is missing.
std::optional<Accounts> accounts_in(const nlohmann::json& accounts);
std::map<std::string, std::uint64_t> losses_in(const nlohmann::json& object);

// What `read` makes of each object in the list, at most this many; it may make nothing.
template <typename Thing, typename ReadOne>
std::vector<Thing> things_in(const nlohmann::json& object, const char* key, std::size_t most,
                             ReadOne read) {
  std::vector<Thing> things;
  if (const nlohmann::json* list = list_in(object, key))
    for (const nlohmann::json& one : *list)
      if (std::optional<Thing> thing; things.size() < most && one.is_object())
        if ((thing = read(one))) things.push_back(std::move(*thing));
  return things;
}

}  // namespace cudabpf
