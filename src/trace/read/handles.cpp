#include "trace/read/handles.hpp"

#include <charconv>
#include <string>

namespace cudabpf::analyze {

std::uint64_t handle_in(std::string_view args, std::string_view name) {
  std::string key = "\"" + std::string(name) + "\":\"0x";
  std::size_t at = args.find(key);
  std::uint64_t handle = 0;
  if (at != std::string_view::npos)
    std::from_chars(args.data() + at + key.size(), args.data() + args.size(), handle, 16);
  return handle;
}

}  // namespace cudabpf::analyze
