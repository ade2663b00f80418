// What a capture folder says about itself: manifest.json. A capture folder is to a program's work
// on a GPU what a core file is to a crash: code, memory, and in their order the operations of one
// iteration (tape.hpp), which can be run again without the program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/fields.hpp"
#include "util/result.hpp"

namespace cudabpf::bundle {

inline constexpr const char* FORMAT = "cudabpf-capture";
inline constexpr const char* FORMAT_VERSION = "1.0";

// No address of a process, and no size of a file, is larger.
inline constexpr std::uint64_t MAX_ADDRESS = std::uint64_t{1} << 57;
constexpr bool is_range(std::uint64_t address, std::uint64_t size) {
  return address < MAX_ADDRESS && size > 0 && size <= MAX_ADDRESS - address;
}

inline constexpr std::uint32_t MAX_PARAMETERS = 64 << 10;  // bytes of a kernel's

// A part of the file `data`.
struct Extent {
  std::uint64_t offset = 0, size = 0;
  bool operator==(const Extent&) const = default;
};
DESCRIBE(Extent, offset, size)

enum class ImageKind : std::uint8_t { cubin, fat_binary, ptx };
inline constexpr std::array<std::string_view, 3> IMAGE_KINDS = {"cubin", "fatbin", "ptx"};
constexpr const auto& names_of(ImageKind) { return IMAGE_KINDS; }

// By its first bytes.
ImageKind kind_of(std::string_view code);

// Code as a program gave it to the driver: images/HASH.KIND.
struct Image {
  std::string hash;  // its SHA-256
  ImageKind kind = ImageKind::cubin;
  std::uint64_t size = 0;
  bool operator==(const Image&) const = default;
};
DESCRIBE(Image, hash, kind, size)
std::string file_of(const Image& image);  // within images/

struct JitOption {
  std::uint32_t option = 0;  // a CUjit_option
  Address value;
  bool operator==(const JitOption&) const = default;
};
DESCRIBE(JitOption, option, value)

// __device__ or __constant__: it lies in no block, and elsewhere in each process.
struct Variable {
  std::string name;
  Address address;  // in the program
  std::uint64_t size = 0;
  std::optional<Extent> before, after;  // what it held; after the iteration: only if that differs
  bool operator==(const Variable&) const = default;
};
DESCRIBE(Variable, name, address, size, before, after)

// An image that was loaded: several times, perhaps, and each time with variables of its own.
struct Module {
  std::uint32_t image = 0;
  bool library = false;  // by cuLibraryLoadData, not cuModuleLoadData
  std::vector<JitOption> options;
  std::vector<Variable> variables;
  bool operator==(const Module&) const = default;
};
DESCRIBE(Module, image, library, options, variables)

struct Attribute {
  std::uint32_t attribute = 0;  // a CUfunction_attribute
  std::int32_t value = 0;
  bool operator==(const Attribute&) const = default;
};
DESCRIBE(Attribute, attribute, value)

struct Parameter {
  std::uint32_t offset = 0, size = 0;
  bool operator==(const Parameter&) const = default;
};
DESCRIBE(Parameter, offset, size)

struct Kernel {
  std::string name;  // mangled
  std::uint32_t module = 0;
  std::vector<Attribute> attributes;   // that the program set
  std::vector<Parameter> parameters;   // where the driver says
  std::optional<std::string> refused;  // why it cannot be run again
  bool operator==(const Kernel&) const = default;
};
DESCRIBE(Kernel, name, module, attributes, parameters, refused)

enum class BlockKind : std::uint8_t { device, managed, pinned, mapped };
inline constexpr std::array<std::string_view, 4> BLOCK_KINDS = {"device", "managed", "pinned",
                                                                "mapped"};
constexpr const auto& names_of(BlockKind) { return BLOCK_KINDS; }
constexpr bool is_on_host(BlockKind kind) {
  return kind == BlockKind::pinned || kind == BlockKind::mapped;
}

struct Block {  // live memory of the program
  Address address;
  std::uint64_t size = 0;
  BlockKind kind = BlockKind::device;
  std::uint32_t device = 0;
  bool operator==(const Block&) const = default;
};
DESCRIBE(Block, address, size, kind, device)

// What lay in pages of memory that follow each other; blocks that share a page share its contents.
struct PageRun {
  static constexpr std::uint64_t PAGE = 2 << 20;
  Address address;  // a multiple of PAGE
  std::uint32_t pages = 0;
  std::optional<std::uint32_t> first;  // of them, in the file `memory`; none: they are all zeroes
  bool operator==(const PageRun&) const = default;
};
DESCRIBE(PageRun, address, pages, first)

struct Device {
  std::string name, uuid, driver;
  std::uint32_t major = 0, minor = 0;  // of its compute capability
  std::uint64_t memory = 0;
  bool operator==(const Device&) const = default;
};
DESCRIBE(Device, name, uuid, driver, major, minor, memory)

struct Limit {
  std::uint32_t limit = 0;  // a CUlimit
  std::uint64_t value = 0;
  bool operator==(const Limit&) const = default;
};
DESCRIBE(Limit, limit, value)

struct Stream {
  std::uint32_t device = 0;
  std::int32_t priority = 0;
  bool non_blocking = false;  // not ordered with the legacy default stream
  bool operator==(const Stream&) const = default;
};
DESCRIBE(Stream, device, priority, non_blocking)

struct Iteration {
  std::uint64_t number = 0;  // as the answers to the trace count them
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;  // in the trace
  bool operator==(const Iteration&) const = default;
};
DESCRIBE(Iteration, number, pid, tid, begin_ns, end_ns)

// Operations that are not on the tape, or that no replay makes.
struct Refused {
  std::string what, why;
  std::uint64_t count = 0;
  bool operator==(const Refused&) const = default;
};
DESCRIBE(Refused, what, why, count)

struct Manifest {
  std::string format = FORMAT, version = FORMAT_VERSION;
  std::string cudabpf;  // the version that made it
  std::string host;
  std::uint64_t unix_ns = 0;  // when
  std::vector<std::string> command;
  std::optional<std::string> rank;
  Iteration iteration;
  bool contents = false;  // of memory
  std::vector<Device> devices;
  std::vector<Limit> limits;    // of the contexts: stack, heap, printf
  std::vector<Stream> streams;  // the first is the legacy default stream
  std::uint32_t events = 0, graphs = 0;
  std::vector<Image> images;
  std::vector<Module> modules;
  std::vector<Kernel> kernels;
  std::vector<Block> blocks;
  std::vector<PageRun> before;  // the iteration
  std::vector<PageRun> after;   // it: only what differs
  std::uint64_t operations = 0;
  std::uint64_t data_size = 0;
  std::uint32_t memory_pages = 0;  // in the file
  std::vector<Refused> refused;
  bool operator==(const Manifest&) const = default;
};
DESCRIBE(Manifest, format, version, cudabpf, host, unix_ns, command, rank, iteration, contents,
         devices, limits, streams, events, graphs, images, modules, kernels, blocks, before, after,
         operations, data_size, memory_pages, refused)

// The file `data` has it.
bool is_in(const Extent& extent, const Manifest& manifest);

std::string manifest_text(const Manifest& manifest);
// An error says what is wrong with it. What is returned is consistent: what refers to something
// refers to what is there, and no page has two contents.
Result<Manifest> manifest_in(std::string_view text);

}  // namespace cudabpf::bundle
