// What tells two names of one file from two files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace cudabpf {

struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  // On overlayfs and btrfs the device is not that of the file beneath, where the kernel's probes
  // hang and its mmap events point: one file has several devices there.
  bool device_varies = false;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  static std::optional<FileId> of(int fd);  // nothing for what is not a regular file

  // By the numbers; see util/system/first_page.hpp for what they do not tell of a file on
  // overlayfs.
  bool same_file(const FileId& other) const;
  bool same_content(const FileId& other) const;  // it was not written to between the two
  // Nothing at all was done to it, and its inode did not become another file's.
  bool untouched_since(const FileId& other) const;
  // The kernel's mmap event names this file so.
  bool is_mapped_as(std::uint64_t mapped_device, std::uint64_t mapped_inode) const;
};

}  // namespace cudabpf
