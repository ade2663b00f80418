#include "collect/mapping_records.hpp"

#include <linux/perf_event.h>
#include <sys/sysmacros.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <vector>

using namespace cudabpf;

namespace {

constexpr std::size_t SIZE = 512;  // of the buffer

// A perf buffer as the kernel fills it.
class Buffer {
 public:
  explicit Buffer(std::uint64_t at = 0) : tail_(at), head_(at) {}

  void put(const void* bytes, std::size_t size) {
    std::vector<std::byte> copy(size);
    std::memcpy(copy.data(), bytes, size);
    for (std::byte byte : copy) data_[head_++ % SIZE] = byte;
  }

  void put_mapping(const std::string& path, std::uint32_t pid, std::uint64_t ts,
                   std::uint32_t type = PERF_RECORD_MMAP2) {
    std::string name = path;
    name.resize((path.size() + 8) / 8 * 8, '\0');
    perf_event_header header{type, 0, static_cast<std::uint16_t>(8 + 64 + name.size() + 8)};
    put(&header, sizeof(header));
    struct {
      std::uint32_t pid, tid;
      std::uint64_t address = 0x7f0000001000, length = 0x2000, page_offset = 0;
      std::uint32_t major = 254, minor = 1;
      std::uint64_t inode = 42, generation = 0;
      std::uint32_t protection = 5, flags = 2;
    } body{pid, pid};
    static_assert(sizeof(body) == 64);
    put(&body, sizeof(body));
    put(name.data(), name.size());
    put(&ts, sizeof(ts));
  }

  void put_header(std::uint32_t type, std::uint16_t size) {
    perf_event_header header{type, 0, size};
    put(&header, sizeof(header));
  }

  MappingsRead read() const {
    MappingsRead read;
    read_mapping_records(data_, tail_, head_, read);
    return read;
  }

 private:
  std::vector<std::byte> data_ = std::vector<std::byte>(SIZE);
  std::uint64_t tail_, head_;
};

}  // namespace

TEST_CASE("Mappings of libcuda are read, and those of other files passed over") {
  Buffer buffer;
  buffer.put_mapping("/lib/libc.so.6", 1, 100);
  buffer.put_mapping("/lib/libcuda.so.1", 7, 200);
  buffer.put_mapping("/lib/libcuda.so.580.159.04 (deleted)", 8, 300);
  MappingsRead read = buffer.read();
  REQUIRE(read.libraries.size() == 2);
  const MappedLibrary& library = read.libraries[0];
  CHECK(library.path == "/lib/libcuda.so.1");
  CHECK(library.pid == 7);
  CHECK(library.ts == 200);
  CHECK(library.address == 0x7f0000001000);
  CHECK(library.length == 0x2000);
  CHECK(library.device == makedev(254, 1));
  CHECK(library.inode == 42);
  CHECK(read.libraries[1].path == "/lib/libcuda.so.580.159.04");
  CHECK(read.libraries[1].ts == 300);
  CHECK(read.unnamed == 0);
}

TEST_CASE("A process that maps a C library has begun its program") {
  Buffer buffer;
  buffer.put_mapping("/lib/x86_64-linux-gnu/libc.so.6", 5, 100);
  buffer.put_mapping("/lib/libc-2.31.so", 6, 200);
  buffer.put_mapping("/lib/libcap.so.2", 7, 300);
  buffer.put_mapping("/lib/libc-client.so.2007e", 8, 300);
  CHECK(buffer.read().begun == std::vector<std::uint32_t>{5, 6});
}

TEST_CASE("A record may wrap around at the buffer's end, anywhere") {
  for (std::uint64_t at = 0; at < SIZE; at += 8) {
    CAPTURE(at);
    Buffer buffer(3 * SIZE + at);
    buffer.put_mapping("/a/libcuda.so.1", 7, 200);
    buffer.put_mapping("/b/libcuda.so.1", 8, 300);
    MappingsRead read = buffer.read();
    REQUIRE(read.libraries.size() == 2);
    CHECK(read.libraries[0].path == "/a/libcuda.so.1");
    CHECK(read.libraries[0].ts == 200);
    CHECK(read.libraries[1].path == "/b/libcuda.so.1");
    CHECK(read.libraries[1].pid == 8);
  }
}

TEST_CASE("What the kernel could not name is counted") {
  Buffer buffer;
  buffer.put_mapping("//toolong", 7, 200);
  buffer.put_mapping("//enomem", 7, 200);
  MappingsRead read = buffer.read();
  CHECK(read.libraries.empty());
  CHECK(read.unnamed == 2);
}

TEST_CASE("Records of other types and short ones are passed over") {
  Buffer buffer;
  buffer.put_mapping("/lib/libcuda.so.1", 7, 200, PERF_RECORD_MMAP);
  buffer.put_header(PERF_RECORD_LOST, 8);
  buffer.put_header(PERF_RECORD_MMAP2, 8);
  buffer.put_mapping("/lib/libcuda.so.1", 7, 300);
  MappingsRead read = buffer.read();
  REQUIRE(read.libraries.size() == 1);
  CHECK(read.libraries[0].ts == 300);
  CHECK(read.unnamed == 0);
}

TEST_CASE(
    "A record with an impossible size ends the reading, and counts as one that is not known") {
  std::uint16_t size = 0;
  SECTION("none") { size = 0; }
  SECTION("shorter than its header") { size = 7; }
  SECTION("longer than what is there") { size = 9; }
  Buffer buffer;
  buffer.put_header(PERF_RECORD_MMAP2, size);
  MappingsRead read = buffer.read();
  CHECK(read.libraries.empty());
  CHECK(read.unnamed == 1);
}

TEST_CASE("An empty buffer has nothing") {
  MappingsRead read = Buffer(77).read();
  CHECK(read.libraries.empty());
  CHECK(read.unnamed == 0);
}
