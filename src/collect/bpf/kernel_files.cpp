#include "collect/bpf/kernel_files.hpp"

#include <fcntl.h>
#include <sys/mount.h>

#include <initializer_list>

namespace cudabpf {

namespace {

// A private mount, visible to no other process.
Fd detached(const char* type) {
  Fd context(fsopen(type, FSOPEN_CLOEXEC));
  if (!context || fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return {};
  return Fd(fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
}

Fd open_file(const std::string& path, std::initializer_list<const char*> folders, const Fd& own) {
  for (const char* folder : folders)
    if (Fd file(open((folder + path).c_str(), O_RDONLY | O_CLOEXEC)); file) return file;
  if (!own) return {};
  return Fd(openat(own.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
}

Result<std::string> read_all(const Fd& file, const std::string& path) {
  char text[4096];
  ssize_t size = file ? read(file.get(), text, sizeof(text)) : -1;
  if (size < 0) return errno_error(path);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

Result<std::string> read_tracefs(const std::string& path) {
  static const Fd OWN = detached("tracefs");
  return read_all(open_file(path, {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"}, OWN),
                  path);
}

Result<std::string> read_debugfs(const std::string& path) {
  static const Fd OWN = detached("debugfs");
  return read_all(open_file(path, {"/sys/kernel/debug/"}, OWN), path);
}

}  // namespace cudabpf
