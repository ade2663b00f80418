// Shared libraries as files: which functions they export, and where a uprobe on each goes.
//
// The bytes may come from any process's file system, so they are hostile. Every read is checked
// against the image. Fixed limits far above what any linker makes bound work and memory: a sparse
// file may claim any size. Another process reads strangers' files (util/elf/elf_reader.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::elf {

// Longer ones are not read.
inline constexpr std::size_t MAX_NAME = 4096;
inline constexpr std::size_t MAX_BUILD_ID = 64;  // bytes

enum class Machine { x86_64, aarch64 };

// Where a file's bytes come from.
class Source {
 public:
  explicit Source(std::uint64_t size) : size_(size) {}
  virtual ~Source() = default;
  std::uint64_t size() const { return size_; }
  // Reads all of it, or returns false: the file ends earlier or has been cut short.
  virtual bool read(std::uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  std::uint64_t size_;
};
std::shared_ptr<const Source> bytes_in_memory(std::span<const std::byte> bytes);  // a view
// By pread, never mapped: a process that can truncate a mapped file can kill its readers.
std::shared_ptr<const Source> bytes_of_file(int fd, std::uint64_t size);

struct Function {
  std::string name;           // without a version suffix
  std::uint64_t address = 0;  // the symbol's value: an address relative to the library's load base
  std::uint64_t offset = 0;   // of its first byte in the file, where a uprobe goes
  std::uint64_t size = 0;     // 0 if the symbol does not say
  std::vector<std::byte> code = {};  // its first bytes, where asked for: see elf_contents.hpp
};

// A place that a program has marked for tracers: by SystemTap's notes, a USDT probe. One probe may
// have several.
struct StaticProbe {
  std::string name;             // with its provider's: "pytorch:malloc"
  std::uint64_t offset = 0;     // in the file, where a uprobe goes
  std::uint64_t semaphore = 0;  // in the file: a counter of its tracers, 2 bytes; 0: it has none
  std::string arguments;  // where they are, as the compiler has written it: "8@%rdi -4@-20(%rbp)"
};

// A 64-bit little-endian executable or shared library.
class Image {
 public:
  // Refuses everything else with a message that says what the file seems to be.
  static Result<Image> parse(std::shared_ptr<const Source> source);
  static Result<Image> open(const Fd& fd);  // the image does not need `fd` afterwards

  Machine machine() const { return machine_; }
  const std::string& build_id() const { return build_id_; }  // lower-case hex; empty if none
  const std::string& soname() const { return soname_; }      // empty if none

  // The functions in the dynamic symbol table whose names begin with `prefix`, in the table's
  // order. Two names, or two versions of a name, may share an offset. No linker makes names that
  // add up to more than the file: beyond that, functions are only counted, in `left_out`.
  std::vector<Function> functions(std::string_view prefix, std::uint64_t* left_out = nullptr) const;

  // The probes whose names, with their providers', begin with `prefix`. `left_out` counts those
  // that are in no code, and what no compiler makes.
  std::vector<StaticProbe> static_probes(std::string_view prefix,
                                         std::uint64_t* left_out = nullptr) const;

  // The first bytes of a function's code: fewer than `count` at the end of its segment.
  std::vector<std::byte> code(const Function& function, std::size_t count = 16) const;

 private:
  friend class Parser;
  friend class ProbeNotes;
  struct Segment {
    std::uint64_t offset = 0, address = 0, size = 0;  // size: of the part that is in the file
    bool executable = false;
  };
  struct Extent {
    std::uint64_t offset = 0, size = 0;
  };

  explicit Image(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  bool contains(std::uint64_t offset, std::uint64_t size) const;
  template <typename T>
  bool read(std::uint64_t offset, T& out) const {
    return source_->read(offset, std::as_writable_bytes(std::span(&out, 1)));
  }
  std::string read_text(std::uint64_t offset,
                        std::uint64_t size) const;  // empty if it is not all there
  std::string_view string_at(std::uint64_t index) const;
  const Segment* segment_of(std::uint64_t address) const;

  std::shared_ptr<const Source> source_;
  Machine machine_ = Machine::x86_64;
  std::vector<Segment> segments_;  // PT_LOAD
  std::string symbols_, strings_;  // the bytes of .dynsym and .dynstr
  std::string build_id_, soname_;
};

}  // namespace cudabpf::elf
