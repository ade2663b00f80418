#include "counts.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "observe.hpp"
#include "settings.hpp"

namespace fake {
namespace {

constexpr int kDigits = 16;

struct Counter {
  std::atomic_flag busy;
  uint64_t value;
  char* digits;  // in the mapped file; null without one
};

Counter* counters;  // kSymbolCount of them
char* mapped;
size_t mapped_size;

std::string empty_file() {
  std::string text;
  for (int i = 0; i < kSymbolCount; ++i) {
    text += kSymbols[i].name;
    text += "\t" + std::string(kDigits, '0') + "\n";
  }
  return text;
}

void write_digits(char* digits, uint64_t value) {
  char text[kDigits];
  for (int i = kDigits - 1; i >= 0; --i, value /= 10) text[i] = static_cast<char>('0' + value % 10);
  memcpy(digits, text, kDigits);
}

// Opens the file, which is complete from the moment it has its name, since tests read it while the
// process runs. A file of the right size is this process's own, from before an exec.
int open_file(const std::string& path, const std::string& text) {
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status = {};
  if (file >= 0 && fstat(file, &status) == 0 && static_cast<size_t>(status.st_size) == text.size())
    return file;
  if (file >= 0) close(file);
  const std::string unnamed = path + ".new";
  file = open(unnamed.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      rename(unnamed.c_str(), path.c_str()) != 0) {
    perror(("fake libcuda: " + path).c_str());
    _exit(2);
  }
  return file;
}

void map_file() {
  const std::string path =
      settings().counts_directory + "/counts." + std::to_string(getpid()) + ".tsv";
  const std::string text = empty_file();
  const int file = open_file(path, text);
  mapped_size = text.size();
  void* address = mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (address == MAP_FAILED) {
    perror(("fake libcuda: " + path).c_str());
    _exit(2);
  }
  mapped = static_cast<char*>(address);
}

}  // namespace

void restart_counts() {
  if (mapped) munmap(mapped, mapped_size);
  mapped = nullptr;
  if (!counters) counters = new Counter[kSymbolCount];
  for (int i = 0; i < kSymbolCount; ++i) {
    counters[i].busy.clear();
    counters[i].value = 0;
    counters[i].digits = nullptr;
  }
  if (settings().counts_directory.empty()) return;
  map_file();
  char* line = mapped;
  for (int i = 0; i < kSymbolCount; ++i) {
    counters[i].digits = line + strlen(kSymbols[i].name) + 1;
    counters[i].value = strtoull(counters[i].digits, nullptr, 10);
    line = counters[i].digits + kDigits + 1;
  }
}

uint64_t count_call(int symbol) {
  Counter& counter = counters[symbol];
  while (counter.busy.test_and_set(std::memory_order_acquire)) {
  }
  const uint64_t value = ++counter.value;
  if (counter.digits) write_digits(counter.digits, value);
  counter.busy.clear(std::memory_order_release);
  return value;
}

}  // namespace fake
