// The tables of functions (apis/*.tsv) as C++: what each exported function does and
// what each of its arguments means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cudabpf/api.hpp"
#include "cudabpf/matrix_types.hpp"
#include "cudabpf/meaning.hpp"
#include "cudabpf/memory_kind.hpp"

namespace cudabpf {

enum class Profile : std::uint8_t { light, default_, full };
std::optional<Profile> parse_profile(std::string_view name);
std::string_view to_string(Profile profile);

enum class Role : std::uint8_t {
  // scalars
  u8,
  u16,
  u32,
  u64,
  i32,
  f32,
  location,
  nccl_type,     // of elements
  nccl_op,       // a reduction; one that the program made is a handle
  blas_op,       // whether a matrix is transposed
  cuda_type,     // of a matrix's elements,
  compute_type,  // and of the sums of their products
  count,         // of elements
  rank,          // of the caller in a communicator,
  ranks,         // and how many there are
  root,
  peer,
  color,  // of the part of a communicator that becomes one, and the caller's place in it
  key,
  // addresses
  ptr,
  ptr32,
  hptr,
  // handles, shown as hex; `device` is an ordinal
  stream,
  context,
  module,
  library,
  function,
  kernel,
  event,
  graph,
  graph_exec,
  node,
  array,
  pool,
  mem_handle,
  comm,
  window,
  blas,  // of cuBLAS
  handle,
  device,
  // memory that is read
  str,
  path,  // a str that names a file
  in_struct,
  // neither followed nor shown
  hidden,
};

constexpr bool is_address(Role role) {
  return role == Role::ptr || role == Role::ptr32 || role == Role::hptr;
}
constexpr bool is_signed_scalar(Role role) {
  return role == Role::i32 || (role >= Role::rank && role <= Role::key);
}
// In four bytes, of which an argument's word has more.
constexpr bool is_narrow(Role role) {
  return role == Role::u32 || role == Role::f32 || role == Role::device || role == Role::ptr32 ||
         role == Role::nccl_type || role == Role::nccl_op || role == Role::blas_op ||
         role == Role::cuda_type || role == Role::compute_type || is_signed_scalar(role);
}
constexpr bool is_text(Role role) { return role == Role::str || role == Role::path; }
std::string_view to_string(Role role);  // as the table spells it

// Structs that a call points to and cudabpf reads.
enum class Struct : std::uint8_t {
  none,
  memcpy2d,
  memcpy3d,
  memcpy3d_peer,
  launch_config,
  launch_params,
  alloc_prop,
  pool_props,
  kernel_node,
  kernel_node_v1,
  memset_node,
  alloc_node,
  graph_node,
  sizes,
  comm_id,
  devices,     // an array of ordinals
  lt_product,  // cuBLASLt's, of which the library alone knows what is where:
  lt_matrix,   // lt_layout.hpp
};

// NCCL's types of elements and its reductions: "bfloat16", "sum". Empty: not known.
std::string_view nccl_type_name(std::uint32_t type);
std::string_view nccl_op_name(std::uint32_t op);
std::uint8_t nccl_type_bytes(std::uint32_t type);  // 0: not known

// How many words of 8 bytes are read of one; of an array, the maximum.
unsigned struct_words(Struct layout);

struct Argument {
  std::string_view name;
  Role role;         // of the value, or of what an out-pointer points to
  bool out;          // a pointer that the call writes through
  Struct layout;     // for in_struct
  std::int8_t word;  // the call's integer word that holds it on this architecture; -1: none
  // A struct may lie behind a pointer in an earlier argument's struct: its offset there.
  std::int8_t holder = -1;
  std::uint8_t pointer_at = 0;
  bool by_value = false;   // `word` is the first of the struct's own
  std::int8_t count = -1;  // of an array: the argument that says how many elements it has
};

// How many bytes a call moves or reserves: a product of arguments, or the sum of an array.
struct SizeRule {
  enum class Kind : std::uint8_t { none, product, sum_of_array } kind = Kind::none;
  std::int8_t argument = -1;
  std::int8_t times = -1;  // a second argument, or -1; of a type of elements, their bytes count
  std::uint8_t unit = 1;
};

// What the name of a function that multiplies matrices says of them.
struct ElementTypes {
  CudaType operands = CudaType::unknown, result = CudaType::unknown;
  ComputeType compute = ComputeType::unknown;
};

enum class NamesEffect : std::uint8_t { none, learn, forget };

// What a call does to contexts: which there are, and which is current on its thread. Its context is
// the argument with that role, the first of the function.
enum class ContextEffect : std::uint8_t {
  none,
  create,        // and makes it current
  create_green,  // a part of a device, which only becomes a context by another call:
  of_green,
  attach,  // it has one more user
  detach,  // and one less; the last one destroys it
  destroy,
  set_current,
  push,
  pop,
  retain_primary,
  release_primary,
  reset_primary,
  green_stream,  // makes a stream of a part of a device
};

// What a call is about and what it does: `Type` and `Op`, both with a `none`.
#include "cuda_api_words.inc"

constexpr std::string_view to_string(Type type) { return TYPE_NAMES[static_cast<int>(type)]; }
constexpr std::string_view to_string(Op op) { return OP_NAMES[static_cast<int>(op)]; }

// "CUDA_ERROR_OUT_OF_MEMORY"; empty for an unknown number.
std::string_view result_name(ApiId api, int result);

// A program may be compiled to use a default stream per thread: it then calls functions with these
// names.
constexpr bool is_for_threads(std::string_view symbol) {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}

struct Function {
  std::string_view symbol;
  std::string_view name;
  Type type;
  Op op;
  std::optional<MemoryKind> kind;
  Profile profile;  // the smallest profile that traces it
  bool async;
  NamesEffect names;
  ContextEffect context;
  GraphAction graph;
  NodeWork node;        // what the node does that it adds or changes
  MemoryEffect memory;  // besides its meaning's
  SizeRule size;
  ElementTypes elements;
  ApiId api;                 // the library that exports it
  std::uint8_t stack_words;  // of its arguments, that lie on the stack on x86-64
  bool has_result;           // it returns one of its library's results
  Meaning meaning;
  std::span<const Argument> arguments;

  std::uint8_t layer() const { return cudabpf::api(api).layer; }
  bool is_failure(int result) const { return has_result && cudabpf::api(api).is_failure(result); }
  std::string_view result_name(int result) const { return cudabpf::result_name(api, result); }
  bool launches_kernel() const { return meaning.node == NodeWork::kernel; }
  bool launches_graph() const { return meaning.node == NodeWork::graph; }
  // By its event, a stream may join a capture.
  bool joins_captures() const {
    return meaning.event == EventEffect::record || meaning.event == EventEffect::wait;
  }
  bool copies() const { return meaning.counted == CountedAs::copies; }
  MemoryEffect memory_effect() const {
    return memory != MemoryEffect::none ? memory : meaning.memory;
  }
  bool allocates() const { return layer() == 0 && memory_effect() == MemoryEffect::alloc; }
  // Its return adds nothing, so `light` records only its entry.
  bool entry_is_enough() const;
  // How often it is called, how long it takes and how often it fails is enough for most users: no
  // later call depends on its arguments.
  bool tally_is_enough() const;
};

// How many words are read of the structs before an argument's own: they lie one behind the other.
unsigned struct_words_before(const Function& function, const Argument& argument);

// What calls with this type and op mean. The reference stays valid.
const Meaning& meaning_of_call(Type type, Op op);

// The functions of all libraries, sorted by symbol.
std::span<const Function> cuda_functions();
const Function* find_function(std::string_view symbol);

// As many as any function is expected to have: cublasGemmStridedBatchedEx has 17.
inline constexpr std::uint8_t UNKNOWN_STACK_WORDS = 24;

// Describes a symbol that is not in the table; `symbol` must outlive the description.
Function unknown_function(ApiId api, std::string_view symbol);

}  // namespace cudabpf
