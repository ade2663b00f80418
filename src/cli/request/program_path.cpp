#include "cli/request/program_path.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

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

namespace {

void unset(std::vector<std::string>& environment, const std::string& name) {
  std::erase_if(environment, [&](const std::string& one) { return one.starts_with(name + "="); });
}

// Takes one of env's options or assignments. Nothing: it is neither, so the program stands here, or
// what makes another command of its text (-S), which is left to env.
std::optional<std::size_t> take_env_word(const std::vector<std::string>& arguments, std::size_t at,
                                         std::vector<std::string>& environment) {
  const std::string& word = arguments[at];
  bool has_next = at + 1 < arguments.size();
  if (word == "-" || word == "-i" || word == "--ignore-environment") {
    environment.clear();
  } else if ((word == "-u" || word == "--unset") && has_next) {
    unset(environment, arguments[++at]);
  } else if (word.starts_with("--unset=")) {
    unset(environment, word.substr(word.find('=') + 1));
  } else if ((word == "-C" || word == "--chdir") && has_next) {
    at++;
  } else if (word.starts_with("-")) {
    if (word.starts_with("-S") || word.starts_with("--split-string")) return std::nullopt;
  } else if (std::size_t end = word.find('='); end != std::string::npos && end) {
    unset(environment, word.substr(0, end));
    environment.push_back(word);
  } else {
    return std::nullopt;
  }
  return at + 1;
}

}  // namespace

Launched behind_env(const std::vector<std::string>& arguments,
                    std::vector<std::string> environment) {
  Launched launched{0, std::move(environment)};
  while (std::filesystem::path(arguments[launched.program]).filename() == "env") {
    std::vector<std::string> changed = launched.environment;
    std::size_t at = launched.program + 1;
    while (at < arguments.size()) {
      auto next = take_env_word(arguments, at, changed);
      if (!next) break;
      at = *next;
    }
    if (at >= arguments.size() || arguments[at].starts_with("-")) break;  // env itself is what runs
    launched = {at, std::move(changed)};
  }
  return launched;
}

}  // namespace cudabpf::cli
