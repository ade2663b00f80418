#include "trace/read/handles.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace cudabpf::analyze {

namespace {

// A trace that another program wrote anew may have some.
std::string_view without_space(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

}  // namespace

std::uint64_t handle_in(std::string_view args, std::string_view name) {
  constexpr std::string_view BEGIN = "\"0x";
  std::string key = "\"" + std::string(name) + "\"";
  for (std::size_t at = args.find(key); at != args.npos; at = args.find(key, at + 1)) {
    std::string_view rest = without_space(args.substr(at + key.size()));
    if (!rest.starts_with(':')) continue;  // it is a value
    rest = without_space(rest.substr(1));
    if (!rest.starts_with(BEGIN)) return 0;
    rest.remove_prefix(BEGIN.size());
    std::uint64_t handle = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), handle, 16);
    return handle;
  }
  return 0;
}

}  // namespace cudabpf::analyze
