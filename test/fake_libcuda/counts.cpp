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

enum Account { kAll, kUnseen, kDoubtful, kAccounts };
constexpr const char* kNames[kAccounts] = {"counts", "unseen", "doubtful"};

struct Number {
  uint64_t value;
  char* digits;  // in the mapped file; null without one
};

struct Counter {
  std::atomic_flag busy;
  Number numbers[kAccounts];
};

Counter* counters;  // kSymbolCount of them
char* mapped[kAccounts];
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

// True if another copy of this library counts in this file.
bool is_mapped(const std::string& name) {
  FILE* maps = fopen("/proc/self/maps", "re");
  bool found = false;
  char line[8192];
  while (maps && !found && fgets(line, sizeof line, maps)) found = strstr(line, name.c_str());
  if (maps) fclose(maps);
  return found;
}

// What comes between the account's name and `.tsv`.
std::string own_part() {
  const std::string pid = "." + std::to_string(getpid());
  std::string part = pid;
  for (int copy = 2; is_mapped(std::string("/") + kNames[kAll] + part + ".tsv"); ++copy) {
    part = pid + "." + std::to_string(copy);
  }
  return part;
}

char* map_file(const std::string& path, const std::string& text) {
  const int file = open_file(path, text);
  void* address = mmap(nullptr, mapped_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (address == MAP_FAILED) {
    perror(("fake libcuda: " + path).c_str());
    _exit(2);
  }
  return static_cast<char*>(address);
}

void add_one(Number& number) {
  ++number.value;
  if (number.digits) write_digits(number.digits, number.value);
}

}  // namespace

void restart_counts() {
  for (char*& file : mapped) {
    if (file) munmap(file, mapped_size);
    file = nullptr;
  }
  if (!counters) counters = new Counter[kSymbolCount];
  for (int i = 0; i < kSymbolCount; ++i) {
    counters[i].busy.clear();
    for (Number& number : counters[i].numbers) number = {0, nullptr};
  }
  if (settings().counts_directory.empty()) return;
  const std::string text = empty_file(), part = own_part();
  mapped_size = text.size();
  for (int account = 0; account < kAccounts; ++account) {
    mapped[account] =
        map_file(settings().counts_directory + "/" + kNames[account] + part + ".tsv", text);
    char* line = mapped[account];
    for (int i = 0; i < kSymbolCount; ++i) {
      char* digits = line + strlen(kSymbols[i].name) + 1;
      counters[i].numbers[account] = {strtoull(digits, nullptr, 10), digits};
      line = digits + kDigits + 1;
    }
  }
}

uint64_t count_call(int symbol, Injection injection) {
  Counter& counter = counters[symbol];
  while (counter.busy.test_and_set(std::memory_order_acquire)) {
  }
  if (injection == Injection::before) add_one(counter.numbers[kUnseen]);
  if (injection == Injection::under_way) add_one(counter.numbers[kDoubtful]);
  add_one(counter.numbers[kAll]);
  const uint64_t value = counter.numbers[kAll].value;
  counter.busy.clear(std::memory_order_release);
  return value;
}

}  // namespace fake
