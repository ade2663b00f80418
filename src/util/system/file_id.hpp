// Finds out whether two names lead to one file or to two.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace cudabpf {

struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  // On overlayfs and btrfs a file has several devices: this one is not that of the file beneath,
  // which the kernel's probes and mmap events refer to.
  bool device_varies = false;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  static std::optional<FileId> of(int fd);  // nothing if it is not a regular file

  // Judges by the numbers; on overlayfs they are not enough: see util/system/first_page.hpp.
  bool same_file(const FileId& other) const;
  bool same_content(const FileId& other) const;  // it was not written to between the two
  // Nothing at all was done to the file, and no other file got its inode.
  bool untouched_since(const FileId& other) const;
  // The kernel's mmap event refers to this file by these numbers.
  bool is_mapped_as(std::uint64_t mapped_device, std::uint64_t mapped_inode) const;
};

}  // namespace cudabpf
