#include "collect/mapping_records.hpp"

#include <linux/perf_event.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace cudabpf {

namespace {

struct Mmap2Record {
  perf_event_header header;
  std::uint32_t pid, tid;
  std::uint64_t address, length, page_offset;
  std::uint32_t major, minor;
  std::uint64_t inode, inode_generation;
  std::uint32_t protection, flags;
  // then the file's name, NUL-padded to 8 bytes, then the time
};
using Time = std::uint64_t;

void copy(std::span<const std::byte> data, std::uint64_t from, std::span<std::byte> to) {
  std::size_t at = from % data.size();
  std::size_t before_the_end = std::min(to.size(), data.size() - at);
  std::memcpy(to.data(), data.data() + at, before_the_end);
  std::memcpy(to.data() + before_the_end, data.data(), to.size() - before_the_end);
}

// "libc.so.6", and "libc-2.31.so" of older ones.
bool is_libc(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || (name.starts_with("libc-") && name.ends_with(".so"));
}

void read_record(std::span<const std::byte> record, MappingsRead& read) {
  if (record.size() <= sizeof(Mmap2Record) + sizeof(Time)) return;
  Mmap2Record mapped;
  std::memcpy(&mapped, record.data(), sizeof(mapped));
  if (mapped.header.type != PERF_RECORD_MMAP2) return;
  const char* name = reinterpret_cast<const char*>(record.data()) + sizeof(mapped);
  std::string_view path(name, strnlen(name, record.size() - sizeof(mapped) - sizeof(Time)));
  // A path that was too long, or for which the kernel had no memory.
  if (path == "//toolong" || path == "//enomem") read.unnamed++;
  constexpr std::string_view MARK_OF_DELETED = " (deleted)";
  if (path.ends_with(MARK_OF_DELETED)) path.remove_suffix(MARK_OF_DELETED.size());
  std::uint64_t ts = 0;
  std::memcpy(&ts, record.data() + record.size() - sizeof(ts), sizeof(ts));
  std::uint64_t device = makedev(mapped.major, mapped.minor);
  if (read.code.size() < MappingsRead::MAX_CODE)
    read.code.push_back({ts, mapped.pid, mapped.address, mapped.address + mapped.length,
                         mapped.page_offset, device, mapped.inode, std::string(path)});
  else
    read.code_lost = true;
  if (is_libc(path)) read.begun.push_back(mapped.pid);
  const Api* api = api_of_file(path);
  if (!api) return;
  MappedLibrary library;
  library.api = api;
  library.pid = mapped.pid;
  library.address = mapped.address;
  library.length = mapped.length;
  library.device = device;
  library.inode = mapped.inode;
  library.path = path;
  library.ts = ts;
  read.libraries.push_back(std::move(library));
}

}  // namespace

void read_mapping_records(std::span<const std::byte> data, std::uint64_t tail, std::uint64_t head,
                          MappingsRead& read) {
  std::vector<std::byte> record;
  while (tail < head) {
    perf_event_header header;
    copy(data, tail, std::as_writable_bytes(std::span(&header, 1)));
    if (header.size < sizeof(header) || header.size > head - tail) {  // no kernel writes that
      read.unnamed++;
      return;
    }
    record.resize(header.size);
    copy(data, tail, record);
    tail += header.size;
    read_record(record, read);
  }
}

}  // namespace cudabpf
