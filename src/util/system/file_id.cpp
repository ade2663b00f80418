#include "util/system/file_id.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace cudabpf {

namespace {

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// overlayfs may keep the layer's number in the uppermost bits.
std::uint64_t without_layer(std::uint64_t inode) { return inode << 16 >> 16; }

}  // namespace

std::optional<FileId> FileId::of(int fd) {
  struct stat status {};
  struct statfs filesystem {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  FileId id;
  id.device = status.st_dev;
  id.inode = status.st_ino;
  if (fstatfs(fd, &filesystem) == 0)
    id.device_varies =
        filesystem.f_type == OVERLAYFS_SUPER_MAGIC || filesystem.f_type == BTRFS_SUPER_MAGIC;
  id.size = static_cast<std::uint64_t>(status.st_size);
  id.modified_ns = nanoseconds(status.st_mtim);
  id.changed_ns = nanoseconds(status.st_ctim);
  return id;
}

bool FileId::same_file(const FileId& other) const {
  if (device == other.device) return inode == other.inode;
  // A copy in another layer has the same inode number, but a later change time.
  return (device_varies || other.device_varies) &&
         without_layer(inode) == without_layer(other.inode) && size == other.size &&
         modified_ns == other.modified_ns && changed_ns == other.changed_ns;
}

bool FileId::same_content(const FileId& other) const {
  return size == other.size && modified_ns == other.modified_ns;
}

bool FileId::untouched_since(const FileId& other) const {
  return same_file(other) && same_content(other) && changed_ns == other.changed_ns;
}

bool FileId::is_mapped_as(std::uint64_t mapped_device, std::uint64_t mapped_inode) const {
  return without_layer(inode) == without_layer(mapped_inode) &&
         (device == mapped_device || device_varies);
}

}  // namespace cudabpf
