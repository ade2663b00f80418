#include "collect/linker_folders.hpp"

#include <glob.h>

#include <algorithm>
#include <fstream>

namespace cudabpf {

namespace {

// Folders that the linker knows without configuration, and where drivers are put beside them.
constexpr const char* DEFAULT_FOLDERS[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
};

// Reads a file of the linker's, and the files that it includes, whose paths begin in `folder`.
void read_config(const std::string& file, const std::string& folder,
                 std::vector<std::string>& folders, int depth) {
  if (depth > 4) return;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t") + 1);
    if (line.starts_with("include")) {
      std::string pattern = line.substr(std::min(line.find_first_not_of(" \t", 7), line.size()));
      if (!pattern.starts_with('/')) pattern.insert(0, folder);
      glob_t matches{};
      if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
        for (std::size_t i = 0; i < matches.gl_pathc; i++)
          read_config(matches.gl_pathv[i], folder, folders, depth + 1);
      globfree(&matches);
    } else if (line.starts_with('/')) {
      folders.push_back(line);
    }
  }
}

}  // namespace

std::vector<std::string> folders_of(std::string_view library_path) {
  std::vector<std::string> folders;
  while (!library_path.empty()) {
    std::size_t end = std::min(library_path.find_first_of(":;"), library_path.size());
    if (end > 0) folders.emplace_back(library_path.substr(0, end));
    library_path.remove_prefix(std::min(end + 1, library_path.size()));
  }
  return folders;
}

std::vector<std::string> linker_folders(std::string_view library_path, const std::string& config) {
  std::vector<std::string> folders = folders_of(library_path);
  read_config(config, config.substr(0, config.rfind('/') + 1), folders, 0);
  folders.insert(folders.end(), std::begin(DEFAULT_FOLDERS), std::end(DEFAULT_FOLDERS));
  return folders;
}

}  // namespace cudabpf
