#include "cudabpf/cuda_api.hpp"

#include <algorithm>
#include <array>

#include "cudabpf/abi.h"

namespace cudabpf {

namespace {

#if defined(__aarch64__)
#define WORD(x86, arm64) arm64
#define BY_VALUE false
#else
#define WORD(x86, arm64) x86
#define BY_VALUE true
#endif
struct NamedResult {
  int number;
  std::string_view name;
};
#include "cuda_api_table.inc"
#undef WORD
#undef BY_VALUE
constexpr std::span<const NamedResult> RESULTS[] = {
#define LIBRARY(api, ...) RESULTS_##api,
#include "cudabpf/libraries.def"
#undef LIBRARY
};

struct StructSize {
  Struct layout;
  unsigned words;
};
// How many 8-byte words are read of a struct; sizes from the CUDA 13.0 headers.
constexpr StructSize STRUCT_SIZES[] = {
    {Struct::memcpy2d, 128 / 8},
    {Struct::memcpy3d, 200 / 8},
    {Struct::memcpy3d_peer, 200 / 8},
    {Struct::launch_config, 56 / 8},
    {Struct::launch_params, 56 / 8},
    {Struct::alloc_prop, 32 / 8},
    {Struct::pool_props, 88 / 8},
    {Struct::kernel_node, 72 / 8},
    {Struct::kernel_node_v1, 56 / 8},
    {Struct::memset_node, 40 / 8},
    {Struct::alloc_node, 112 / 8},
    {Struct::graph_node, 232 / 8},  // as far as it is looked at
    {Struct::sizes, 200 / 8},
    {Struct::comm_id, 128 / 8},
    {Struct::devices, CB_MAX_LISTED * 4 / 8},
    // As far as a record has room for all of a product's; the library says whether it is enough.
    {Struct::lt_product, 48 / 8},
    {Struct::lt_matrix, 40 / 8},
};

// ncclDataType_t and ncclRedOp_t, in order.
struct ElementType {
  std::string_view name;
  std::uint8_t bytes;
};
constexpr ElementType NCCL_TYPES[] = {{"int8", 1},     {"uint8", 1},       {"int32", 4},
                                      {"uint32", 4},   {"int64", 8},       {"uint64", 8},
                                      {"float16", 2},  {"float32", 4},     {"float64", 8},
                                      {"bfloat16", 2}, {"float8_e4m3", 1}, {"float8_e5m2", 1}};
constexpr std::string_view NCCL_OPS[] = {"sum", "prod", "max", "min", "avg"};

constexpr std::string_view ROLE_NAMES[] = {
    "u8",        "u16",     "u32",        "u64",       "i32",          "f32",      "location",
    "nccl_type", "nccl_op", "blas_op",    "cuda_type", "compute_type", "count",    "rank",
    "ranks",     "root",    "peer",       "color",     "key",          "ptr",      "ptr32",
    "hptr",      "stream",  "context",    "module",    "library",      "function", "kernel",
    "event",     "graph",   "graph_exec", "node",      "array",        "pool",     "mem_handle",
    "comm",      "window",  "blas",       "handle",    "device",       "str",      "path",
    "struct",    "hidden"};

}  // namespace

std::optional<Profile> parse_profile(std::string_view name) {
  if (name == "light") return Profile::light;
  if (name == "default") return Profile::default_;
  if (name == "full") return Profile::full;
  return std::nullopt;
}

std::string_view to_string(Profile profile) {
  constexpr std::string_view NAMES[] = {"light", "default", "full"};
  return NAMES[static_cast<int>(profile)];
}

std::string_view nccl_type_name(std::uint32_t type) {
  return type < std::size(NCCL_TYPES) ? NCCL_TYPES[type].name : std::string_view();
}
std::uint8_t nccl_type_bytes(std::uint32_t type) {
  return type < std::size(NCCL_TYPES) ? NCCL_TYPES[type].bytes : 0;
}
std::string_view nccl_op_name(std::uint32_t op) {
  return op < std::size(NCCL_OPS) ? NCCL_OPS[op] : std::string_view();
}

unsigned struct_words(Struct layout) {
  for (const auto& entry : STRUCT_SIZES)
    if (entry.layout == layout) return entry.words;
  return 0;
}

unsigned struct_words_before(const Function& function, const Argument& argument) {
  unsigned words = 0;
  for (const Argument& other : function.arguments) {
    if (&other == &argument) break;
    if (!other.by_value) words += struct_words(other.layout);
  }
  return words;
}

std::string_view to_string(Role role) { return ROLE_NAMES[static_cast<int>(role)]; }

bool Function::entry_is_enough() const {
  return meaning.entry == EntryIsEnough::always || (meaning.entry == EntryIsEnough::async && async);
}

bool Function::tally_is_enough() const {
  return meaning.tally && !kind && names == NamesEffect::none;
}

const Meaning& meaning_of_call(Type type, Op op) {
  return MEANINGS[MEANING_AT[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)]];
}

std::span<const Function> cuda_functions() { return FUNCTIONS; }

const Function* find_function(std::string_view symbol) {
  auto at = std::lower_bound(std::begin(FUNCTIONS), std::end(FUNCTIONS), symbol,
                             [](const Function& f, std::string_view s) { return f.symbol < s; });
  return at != std::end(FUNCTIONS) && at->symbol == symbol ? at : nullptr;
}

Function unknown_function(ApiId api, std::string_view symbol) {
  static constexpr std::array<Argument, 6> RAW = {{{"arg0", Role::u64, false, Struct::none, 0},
                                                   {"arg1", Role::u64, false, Struct::none, 1},
                                                   {"arg2", Role::u64, false, Struct::none, 2},
                                                   {"arg3", Role::u64, false, Struct::none, 3},
                                                   {"arg4", Role::u64, false, Struct::none, 4},
                                                   {"arg5", Role::u64, false, Struct::none, 5}}};
  Function function{};
  function.symbol = function.name = symbol;
  function.api = api;
  function.stack_words = UNKNOWN_STACK_WORDS;
  function.has_result = function.layer() == 0;  // others' functions return texts and structs, too
  function.type = Type::other;
  function.op = Op::other;
  function.meaning = meaning_of_call(function.type, function.op);
  function.profile = Profile::default_;
  function.arguments = RAW;
  return function;
}

std::string_view result_name(ApiId api, int result) {
  std::span<const NamedResult> results = RESULTS[static_cast<std::size_t>(api)];
  auto at = std::lower_bound(results.begin(), results.end(), result,
                             [](const NamedResult& r, int number) { return r.number < number; });
  return at != results.end() && at->number == result ? at->name : std::string_view();
}

}  // namespace cudabpf
