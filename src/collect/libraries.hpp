// Where copies of libcuda are: on the linker's paths, in LD_LIBRARY_PATH, and mapped by processes,
// each in its own mount namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/fd.hpp"
#include "util/file_id.hpp"
#include "util/procfs.hpp"
#include "util/result.hpp"

namespace cudabpf {

// An open library, and the name to show for it.
struct LibraryFile {
  Fd fd;
  FileId id;
  std::string path;
};

// Opens a path as this process sees it.
std::optional<LibraryFile> open_library(const std::string& path, const std::string& shown_as);

// Opens what `pid` has mapped at [start, end): the very file, whatever became of its name.
std::optional<LibraryFile> open_mapped(const Procfs& procfs, std::uint32_t pid, std::uint64_t start,
                                       std::uint64_t end, const std::string& path);

// Copies of libcuda on the linker's configured folders, and in those of `library_path` (the value
// of LD_LIBRARY_PATH), each file once.
std::vector<LibraryFile> find_on_paths(std::string_view library_path);

// Copies mapped by any of `pids`.
std::vector<LibraryFile> find_mapped(const Procfs& procfs, const std::vector<pid_t>& pids);

}  // namespace cudabpf
