#include "util/system/first_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "util/system/fd.hpp"

// Since Linux 5.14; Debian 12's C library has it.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace cudabpf {

namespace {

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// The number of the page frame mapped there; 0 if the kernel does not say.
std::uint64_t frame_of(int pagemap, const void* memory) {
  constexpr std::uint64_t PRESENT = 1ULL << 63, FRAME = (1ULL << 55) - 1;
  std::uint64_t entry = 0;
  auto at = reinterpret_cast<std::uintptr_t>(memory) / page_size() * sizeof entry;
  if (pread(pagemap, &entry, sizeof entry, static_cast<off_t>(at)) != sizeof entry) return 0;
  return entry & PRESENT ? entry & FRAME : 0;
}

}  // namespace

std::optional<FirstPage> FirstPage::of(int fd) {
  void* memory = mmap(nullptr, page_size(), PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  return FirstPage(memory);
}

FirstPage::FirstPage(FirstPage&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}

FirstPage& FirstPage::operator=(FirstPage&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

FirstPage::~FirstPage() {
  if (memory_) munmap(memory_, page_size());
}

std::optional<bool> FirstPage::is_same_as(const FirstPage& other) const {
  Fd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  constexpr int TRIES = 3;  // a page may be reclaimed between two looks
  for (int i = 0; i < TRIES; i++) {
    // Faults the page in without touching it: touching a truncated file would raise SIGBUS.
    if (madvise(memory_, page_size(), MADV_POPULATE_READ) != 0 ||
        madvise(other.memory_, page_size(), MADV_POPULATE_READ) != 0)
      return std::nullopt;
    std::uint64_t mine = frame_of(pagemap.get(), memory_);
    std::uint64_t others = frame_of(pagemap.get(), other.memory_);
    if (mine && others && mine == frame_of(pagemap.get(), memory_)) return mine == others;
  }
  return std::nullopt;
}

}  // namespace cudabpf
