// Tells whether two descriptors lead to one file, where the numbers do not: overlayfs keeps a
// file's device and inode when it makes a copy of it to write to, and nothing that can be asked for
// tells the copy from the file. But one file has one page in the page cache.
#pragma once

#include <optional>

namespace cudabpf {

class FirstPage {
 public:
  // Keeps the file's first page mapped. Nothing if it has none that can be.
  static std::optional<FirstPage> of(int fd);
  FirstPage(FirstPage&& other) noexcept;
  FirstPage& operator=(FirstPage&& other) noexcept;
  FirstPage(const FirstPage&) = delete;
  FirstPage& operator=(const FirstPage&) = delete;
  ~FirstPage();

  // Nothing: the kernel does not say (it takes CAP_SYS_ADMIN).
  std::optional<bool> is_same_as(const FirstPage& other) const;

 private:
  explicit FirstPage(void* memory) : memory_(memory) {}
  void* memory_;
};

}  // namespace cudabpf
