// Tables with keys that come from a trace or a traced process have a limit.
#pragma once

#include <cstddef>

namespace cudabpf {

// Whether the key is in the table, or may be added to it.
template <typename Table, typename Key>
bool has_room_for(const Table& table, const Key& key, std::size_t at_most) {
  return table.size() < at_most || table.contains(key);
}

}  // namespace cudabpf
