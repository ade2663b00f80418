// Shared libraries as files: which functions they export, and where a uprobe on each goes.
//
// The bytes may come from any process's file system, so they are hostile: every read is checked
// against the image, and work and memory are bounded by the image's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/fd.hpp"
#include "util/result.hpp"

namespace cudabpf::elf {

enum class Machine { x86_64, aarch64 };
std::string_view name_of(Machine machine);  // "x86-64", "AArch64"

struct Function {
  std::string name;      // without a version suffix
  uint64_t address = 0;  // the symbol's value: an address relative to the library's load base
  uint64_t offset = 0;   // where its first byte lies in the file: what a uprobe wants
  uint64_t size = 0;     // 0 where the symbol does not say
  bool weak = false;
  bool ifunc = false;  // the address is the resolver's, not that of the code which runs
};

// A 64-bit little-endian executable or shared library. Keeps a view: the bytes must outlive it.
class Image {
 public:
  // Refuses everything else with a message that says what the file seems to be.
  static Result<Image> parse(std::span<const std::byte> bytes);

  Machine machine() const { return machine_; }
  const std::string& build_id() const { return build_id_; }  // lower-case hex; empty if none
  const std::string& soname() const { return soname_; }      // empty if none

  // The functions that the dynamic symbol table exports and whose names begin with `prefix`, in
  // the table's order. Two names, or two versions of a name, may share an offset. Names that add
  // up to more than the file come from no linker: the list ends there.
  std::vector<Function> functions(std::string_view prefix) const;

  // The first bytes of a function's code: fewer than `count` at the end of its segment.
  std::span<const std::byte> code(const Function& function, size_t count = 16) const;

 private:
  friend class Parser;
  struct Segment {
    uint64_t offset = 0, address = 0, size = 0;  // size: of what the file holds of it
    bool executable = false;
  };
  struct Extent {
    uint64_t offset = 0, size = 0;
  };

  explicit Image(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool contains(uint64_t offset, uint64_t size) const;
  template <typename T>
  bool read(uint64_t offset, T& out) const;
  std::string_view string_at(uint64_t index) const;
  const Segment* segment_of(uint64_t address) const;

  std::span<const std::byte> bytes_;
  Machine machine_ = Machine::x86_64;
  std::vector<Segment> segments_;  // PT_LOAD
  Extent symbols_, strings_;       // .dynsym and .dynstr; both lie inside the file
  std::string build_id_, soname_;
};

// A library's file, mapped into memory read-only, with its image. As with any mapped file, whoever
// may cut it short in place may end this program with SIGBUS, and every program that uses it.
class Library {
 public:
  static Result<Library> map(const Fd& fd);
  Library(Library&& other) noexcept;
  Library& operator=(Library&& other) noexcept;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  const Image& image() const { return image_; }

 private:
  Library(std::span<const std::byte> mapping, Image image)
      : mapping_(mapping), image_(std::move(image)) {}

  std::span<const std::byte> mapping_;
  Image image_;
};

}  // namespace cudabpf::elf
