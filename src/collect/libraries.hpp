// Finds copies of the libraries whose functions are traced: on the linker's paths, in
// LD_LIBRARY_PATH, and mapped by processes, each in its own mount namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cudabpf/api.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"
#include "util/system/file_id.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

// An open library and the name to show for it.
struct LibraryFile {
  Fd fd;
  FileId id;
  std::string path;
  const Api* api;      // the library that it is, if it is one
  bool named = false;  // by the user, so it is one whatever its name
};

// A library as a process has mapped it.
struct MappedLibrary {
  std::uint64_t ts = 0;  // CLOCK_MONOTONIC, when it was mapped; 0: before watching began
  std::uint32_t pid = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t device = 0;  // as the kernel reports it for mappings: see FileId
  std::uint64_t inode = 0;
  std::string path;          // as the process's own mount namespace names it
  const Api* api = nullptr;  // the library that it is, by its name
};

// Opens a path as this process sees it.
std::optional<LibraryFile> open_library(const std::string& path, const std::string& shown_as,
                                        const Api& api);
// A file that the user named: the library that its name says, else the driver's.
std::optional<LibraryFile> open_named(const std::string& path);

// Opens the very file that a process has mapped, whatever became of its name.
std::optional<LibraryFile> open_mapped(const Procfs& procfs, const MappedLibrary& mapped);

// The same where the process may be gone, or have unmapped it.
std::optional<LibraryFile> open_mapped_or_gone(const Procfs& procfs, const MappedLibrary& mapped);

// Copies in the linker's configured folders and those of `library_path` (the value of
// LD_LIBRARY_PATH), each file once.
std::vector<LibraryFile> find_on_paths(std::string_view library_path);

// Where a process will look for libraries besides the linker's folders: those of its own
// LD_LIBRARY_PATH, unless that is `known`, and of its Python's packages. As LD_LIBRARY_PATH has
// them; empty: nowhere.
std::string folders_ahead(const Procfs& procfs, pid_t pid, std::string_view known);
// The libraries in these folders, before the process looks for them.
std::vector<LibraryFile> find_ahead(const Procfs& procfs, pid_t pid, std::string_view wanted);

// Copies mapped by any of `pids`: each mapping, and each file once.
std::vector<MappedLibrary> mapped_libraries(const Procfs& procfs, const std::vector<pid_t>& pids);
std::vector<LibraryFile> find_mapped(const Procfs& procfs, const std::vector<pid_t>& pids);

}  // namespace cudabpf
