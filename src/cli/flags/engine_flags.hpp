// Inference engines that are asked for their metrics, as a user gives them.
#pragma once

#include <string>
#include <vector>

#include "util/http/url.hpp"
#include "util/result.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct EngineFlags {
  std::vector<std::string> urls;

  // The option needs this other one, if it is not empty.
  void add_to(CLI::App& app, const std::string& needed);
  Result<std::vector<http::Url>> options() const;
};

}  // namespace cudabpf::cli
