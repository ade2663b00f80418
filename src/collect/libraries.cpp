#include "collect/libraries.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>

#include "collect/linker_folders.hpp"
#include "collect/package_folders.hpp"

namespace cudabpf {

namespace {

namespace fs = std::filesystem;

void add_new(std::vector<LibraryFile>& files, std::optional<LibraryFile> file) {
  if (!file) return;
  bool known = std::any_of(files.begin(), files.end(),
                           [&](const LibraryFile& other) { return other.id.same_file(file->id); });
  if (!known) files.push_back(std::move(*file));
}

// `found` is O_PATH, since opening a pipe may block and opening a device may have effects.
std::optional<LibraryFile> open_found(const Fd& found, const std::string& shown_as,
                                      const Api& api) {
  auto id = FileId::of(found.get());
  if (!id) return std::nullopt;
  Fd fd(open(fmt::format("/proc/self/fd/{}", found.get()).c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  return LibraryFile{.fd = std::move(fd), .id = *id, .path = shown_as, .api = &api};
}

// Opens a path as a process with this root would; links cannot lead out of it.
Fd open_inside(const std::string& root, const std::string& path) {
  Fd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
}

}  // namespace

std::optional<LibraryFile> open_library(const std::string& path, const std::string& shown_as,
                                        const Api& api) {
  // Not O_NOFOLLOW: libcuda.so.1 is usually a link.
  return open_found(Fd(open(path.c_str(), O_PATH | O_CLOEXEC)), shown_as, api);
}

std::optional<LibraryFile> open_named(const std::string& path) {
  const Api* by_name = api_of_file(path);
  auto file = open_library(path, path, by_name ? *by_name : api(ApiId::cuda));
  if (file) file->named = true;
  return file;
}

std::optional<LibraryFile> open_mapped(const Procfs& procfs, const MappedLibrary& mapped) {
  // If a process's main thread has ended, its other threads still have its files.
  std::vector<pid_t> tids = procfs.threads(static_cast<pid_t>(mapped.pid));
  tids.insert(tids.begin(), static_cast<pid_t>(mapped.pid));
  constexpr std::size_t ENOUGH = 4;
  if (tids.size() > ENOUGH) tids.resize(ENOUGH);
  std::string range =
      fmt::format("map_files/{:x}-{:x}", mapped.address, mapped.address + mapped.length);
  for (pid_t tid : tids)
    if (auto file = open_library(procfs.path(tid, range), mapped.path, *mapped.api)) return file;
  for (pid_t tid : tids) {
    auto file =
        open_found(open_inside(procfs.path(tid, "root"), mapped.path), mapped.path, *mapped.api);
    // By now the name may belong to another file.
    if (file && file->id.is_mapped_as(mapped.device, mapped.inode)) return file;
  }
  return std::nullopt;
}

std::optional<LibraryFile> open_mapped_or_gone(const Procfs& procfs, const MappedLibrary& mapped) {
  if (auto file = open_mapped(procfs, mapped)) return file;
  // Here the same name may belong to another file.
  auto file = open_library(mapped.path, mapped.path, *mapped.api);
  if (file && !file->id.is_mapped_as(mapped.device, mapped.inode)) file.reset();
  return file;
}

std::vector<LibraryFile> find_on_paths(std::string_view library_path) {
  std::vector<LibraryFile> files;
  for (const std::string& folder : linker_folders(library_path)) {
    std::error_code ignored;
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (api_of_file(entry.path().native())) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      // Shows the file's real name, which contains the driver's version.
      fs::path real = fs::canonical(path, ignored);
      add_new(files, open_library(path, real.empty() ? path : real.native(), *api_of_file(path)));
    }
  }
  return files;
}

std::string folders_ahead(const Procfs& procfs, pid_t pid, std::string_view known) {
  std::vector<std::string> environment = procfs.environment(pid);
  std::string folders = value_in(environment, "LD_LIBRARY_PATH");
  if (folders == known) folders.clear();
  for (const std::string& folder : package_folders(procfs.process(pid), environment))
    folders += (folders.empty() ? "" : ":") + folder;
  return folders;
}

std::vector<LibraryFile> find_ahead(const Procfs& procfs, pid_t pid, std::string_view wanted) {
  // The variable may name any number of folders.
  constexpr std::size_t MAX_FOLDERS = 256;
  std::vector<LibraryFile> files;
  std::vector<std::string> folders = folders_of(wanted);
  if (folders.size() > MAX_FOLDERS) folders.resize(MAX_FOLDERS);
  std::string root = procfs.path(pid, "root");
  for (const std::string& folder : folders) {
    if (!folder.starts_with('/')) continue;
    for (const Api& api : APIS)
      for (std::string_view version : {api.version, std::string_view()}) {
        Fd found = open_inside(root, fmt::format("{}/{}{}", folder, api.file, version));
        std::error_code ignored;
        fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", found.get()), ignored);
        if (found) add_new(files, open_found(found, real.native(), api));
      }
  }
  return files;
}

std::vector<MappedLibrary> mapped_libraries(const Procfs& procfs, const std::vector<pid_t>& pids) {
  std::vector<MappedLibrary> found;
  for (pid_t pid : pids)
    for (const Mapping& mapping : procfs.maps(pid))
      if (const Api* api = api_of_file(mapping.path); api && mapping.executable())
        found.push_back({.pid = static_cast<std::uint32_t>(pid),
                         .address = mapping.start,
                         .length = mapping.end - mapping.start,
                         .device = makedev(mapping.major, mapping.minor),
                         .inode = mapping.inode,
                         .path = mapping.path,
                         .api = api});
  return found;
}

std::vector<LibraryFile> find_mapped(const Procfs& procfs, const std::vector<pid_t>& pids) {
  std::vector<LibraryFile> files;
  for (const MappedLibrary& mapped : mapped_libraries(procfs, pids))
    add_new(files, open_mapped(procfs, mapped));
  return files;
}

}  // namespace cudabpf
