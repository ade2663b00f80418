// Finds out whether two descriptors lead to one file if the numbers do not show it: when overlayfs
// copies a file to write to it, the copy keeps device and inode, and no query distinguishes the
// two. But a file has only one first page in the page cache.
#pragma once

#include <optional>

namespace cudabpf {

class FirstPage {
 public:
  // Keeps the file's first page mapped. Nothing if it cannot be mapped.
  static std::optional<FirstPage> of(int fd);
  FirstPage(FirstPage&& other) noexcept;
  FirstPage& operator=(FirstPage&& other) noexcept;
  FirstPage(const FirstPage&) = delete;
  FirstPage& operator=(const FirstPage&) = delete;
  ~FirstPage();

  // Nothing if the kernel does not say (it requires CAP_SYS_ADMIN).
  std::optional<bool> is_same_as(const FirstPage& other) const;

 private:
  explicit FirstPage(void* memory) : memory_(memory) {}
  void* memory_;
};

}  // namespace cudabpf
