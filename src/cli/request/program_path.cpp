#include "cli/request/program_path.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cli/request/invoker.hpp"

namespace cudabpf::cli {

std::string find_program(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return program;
  std::string path = value_in(environment, "PATH");
  if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
  auto is_file = [](const std::string& name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(name, ignored);
  };
  std::string found;
  for (std::size_t at = 0; at <= path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    std::string folder = end == at ? "." : path.substr(at, end - at);
    std::string candidate = fmt::format("{}/{}", folder, program);
    if (is_file(candidate)) {
      if (access(candidate.c_str(), X_OK) == 0) return candidate;
      if (found.empty()) found = candidate;
    }
    at = end + 1;
  }
  return found;
}

}  // namespace cudabpf::cli
