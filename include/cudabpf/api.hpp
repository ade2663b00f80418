// The libraries whose functions are traced (libraries.def) as C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cudabpf {

enum class ApiId : std::uint8_t {
#define LIBRARY(api, ...) api,
#include "cudabpf/libraries.def"
#undef LIBRARY
};

// What has a library traced by eBPF.
enum class Traced : std::uint8_t { always, with_shapes, with_blocks };

struct Api {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a row
  ApiId id;
  std::string_view key;      // "cuda"
  std::string_view file;     // "libcuda.so": its names begin with that
  std::string_view version;  // of the name that programs load: ".1"
  std::string_view package;  // "nvidia/nccl/lib": below Python's packages; several: with colons
  std::string_view prefix;   // of its functions' names, before an upper-case letter; "pytorch:"
  std::string_view proof;    // a function that the library exports, or a probe that it has
  std::string_view first;    // the function that comes first, and calls the driver; if any
  std::uint8_t layer;        // 0: the driver's; higher ones call those of lower layers
  std::int32_t pending;      // the result, besides 0, that is no failure
  std::uint32_t most_unknown;
  Traced traced;

  std::string_view library() const { return file.substr(0, file.find('.')); }  // "libcuda"
  // Its functions are USDT probes, which begin and have no end.
  constexpr bool has_probes() const { return prefix.ends_with(':'); }
  // A query that answers "still busy" has not failed.
  constexpr bool is_failure(std::int64_t result) const { return result != 0 && result != pending; }
};

inline constexpr Api APIS[] = {
#define LIBRARY(api, name, version, package, prefix, proof, first, layer, pending, most_unknown, \
                traced)                                                                          \
  {ApiId::api, #api,  name,  version, package,      prefix,                                      \
   proof,      first, layer, pending, most_unknown, Traced::traced},
#include "cudabpf/libraries.def"
#undef LIBRARY
};

constexpr const Api& api(ApiId id) { return APIS[static_cast<std::size_t>(id)]; }

// The library with this key in libraries.def and in traces; null: unknown to this version.
constexpr const Api* api_of_key(std::string_view key) {
  for (const Api& one : APIS)
    if (one.key == key) return &one;
  return nullptr;
}

// The library that a file with this name is: "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04",
// with or without a folder. Null: none of them.
constexpr const Api* api_of_file(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const Api& one : APIS)
    if (name.starts_with(one.file) &&
        (name.size() == one.file.size() || name[one.file.size()] == '.'))
      return &one;
  return nullptr;
}

}  // namespace cudabpf
