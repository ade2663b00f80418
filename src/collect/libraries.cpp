#include "collect/libraries.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "collect/mapping_watch.hpp"

namespace cudabpf {

namespace {

namespace fs = std::filesystem;

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

// Reads ld.so.conf and what it includes.
void read_linker_config(const std::string& file, std::vector<std::string>& folders, int depth) {
  if (depth > 4) return;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t") + 1);
    if (line.starts_with("include")) {
      std::string pattern = line.substr(std::min(line.find_first_not_of(" \t", 7), line.size()));
      if (!pattern.starts_with('/')) pattern.insert(0, "/etc/");
      glob_t matches{};
      if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
        for (std::size_t i = 0; i < matches.gl_pathc; i++)
          read_linker_config(matches.gl_pathv[i], folders, depth + 1);
      globfree(&matches);
    } else if (line.starts_with('/')) {
      folders.push_back(line);
    }
  }
}

std::vector<std::string> linker_folders(std::string_view library_path) {
  std::vector<std::string> folders;
  while (!library_path.empty()) {
    std::size_t end = std::min(library_path.find_first_of(":;"), library_path.size());
    if (end > 0) folders.emplace_back(library_path.substr(0, end));
    library_path.remove_prefix(std::min(end + 1, library_path.size()));
  }
  read_linker_config("/etc/ld.so.conf", folders, 0);
  folders.insert(folders.end(), std::begin(DEFAULT_FOLDERS), std::end(DEFAULT_FOLDERS));
  return folders;
}

void add_new(std::vector<LibraryFile>& files, std::optional<LibraryFile> file) {
  if (!file) return;
  bool known = std::any_of(files.begin(), files.end(),
                           [&](const LibraryFile& other) { return other.id.same_file(file->id); });
  if (!known) files.push_back(std::move(*file));
}

}  // namespace

std::optional<LibraryFile> open_library(const std::string& path, const std::string& shown_as) {
  // Not O_NOFOLLOW: libcuda.so.1 is mostly a link. O_NONBLOCK, lest a named pipe hold us.
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  auto id = FileId::of(fd.get());
  if (!id) return std::nullopt;
  return LibraryFile{std::move(fd), *id, shown_as};
}

std::optional<LibraryFile> open_mapped(const Procfs& procfs, std::uint32_t pid, std::uint64_t start,
                                       std::uint64_t end, const std::string& path) {
  auto process = static_cast<pid_t>(pid);
  auto by_mapping =
      open_library(procfs.path(process, fmt::format("map_files/{:x}-{:x}", start, end)), path);
  if (by_mapping) return by_mapping;
  return open_library(procfs.path(process, "root" + path), path);
}

std::vector<LibraryFile> find_on_paths(std::string_view library_path) {
  std::vector<LibraryFile> files;
  for (const std::string& folder : linker_folders(library_path)) {
    std::error_code ignored;
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (is_libcuda(entry.path().filename().native())) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      // Shown by the file's own name, which tells the driver's version.
      fs::path real = fs::canonical(path, ignored);
      add_new(files, open_library(path, real.empty() ? path : real.native()));
    }
  }
  return files;
}

std::vector<LibraryFile> find_mapped(const Procfs& procfs, const std::vector<pid_t>& pids) {
  std::vector<LibraryFile> files;
  for (pid_t pid : pids)
    for (const Mapping& mapping : procfs.maps(pid))
      if (mapping.executable() && is_libcuda(mapping.path))
        add_new(files, open_mapped(procfs, static_cast<std::uint32_t>(pid), mapping.start,
                                   mapping.end, mapping.path));
  return files;
}

}  // namespace cudabpf
