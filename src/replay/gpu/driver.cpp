#include "replay/gpu/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf::replay {

bool Status::is_refusal() const {
  constexpr int INVALID_FUNCTION = 98, INVALID_IMAGE = 200, NO_BINARY = 209, INVALID_HANDLE = 400,
                NOT_FOUND = 500, OUT_OF_RESOURCES = 701, COOPERATIVE_TOO_LARGE = 720,
                NOT_SUPPORTED = 801, CLUSTER_SIZE = 912;
  constexpr int ALL[] = {
      INVALID_VALUE, INVALID_FUNCTION, INVALID_IMAGE, NO_BINARY,        INVALID_HANDLE,
      NOT_FOUND,     NOT_SUPPORTED,    CLUSTER_SIZE,  OUT_OF_RESOURCES, COOPERATIVE_TOO_LARGE};
  return std::find(std::begin(ALL), std::end(ALL), code) != std::end(ALL);
}

std::string Status::text() const {
  std::string_view name = result_name(ApiId::cuda, code);
  return name.empty() ? fmt::format("{}: error {}", function, code)
                      : fmt::format("{}: {} ({})", function, name, code);
}

Result<> Status::result() const {
  if (succeeded()) return ok();
  return Error{text(), {}};
}

}  // namespace cudabpf::replay
