#include "cudabpf/describe.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "cudabpf/abi.h"
#include "util/hash.hpp"

namespace cudabpf {

namespace {

using Bytes = std::span<const std::byte>;
using Words = std::span<const std::uint64_t>;

template <typename T>
T field(Bytes bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::optional<std::uint64_t> word_at(const Argument& argument, Words words) {
  if (argument.word < 0 || static_cast<std::size_t>(argument.word) >= words.size())
    return std::nullopt;
  return words[static_cast<std::size_t>(argument.word)];
}

std::optional<std::uint64_t> word_of(const Argument& argument, Words words) {
  auto word = word_at(argument, words);
  if (word) word = value_of(argument.role, *word);
  return word;
}

// The caller passed a null out-pointer, so it wanted no value.
bool was_null(const Argument& argument, Words words) {
  return word_at(argument, words) == std::uint64_t{0};
}

// Nothing if the product overflows 64 bits: then an argument is not what it seems.
std::optional<std::uint64_t> product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (std::uint64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
  return result;
}

template <std::size_t count>
std::array<std::uint64_t, count> words_in(Bytes bytes) {
  std::array<std::uint64_t, count> words{};
  for (std::size_t i = 0; i < count; i++) words[i] = field<std::uint64_t>(bytes, i * 8);
  return words;
}

// CUmemorytype
constexpr std::uint32_t HOST = 1, ARRAY = 3, UNIFIED = 4;  // DEVICE is 2

// None if only one side is unified or a value is not a memory type.
Op direction(std::uint32_t source, std::uint32_t destination) {
  constexpr Op DIRECTIONS[3][3] = {{Op::HtoH, Op::HtoD, Op::HtoA},
                                   {Op::DtoH, Op::DtoD, Op::DtoA},
                                   {Op::AtoH, Op::AtoD, Op::AtoA}};
  if (source == UNIFIED && destination == UNIFIED) return Op::unified;
  if (source < HOST || source > ARRAY || destination < HOST || destination > ARRAY) return Op::none;
  return DIRECTIONS[source - HOST][destination - HOST];
}

void describe_struct(const Function& function, Struct layout, Bytes bytes, Details& details);

struct CopyEnd {
  std::uint32_t type;
  std::uint64_t address;
};

// A copy's source or destination, read from the copy struct: the memory type is at `type_at`; host,
// device and array follow in 8-byte steps.
CopyEnd copy_end(Bytes bytes, std::size_t type_at) {
  auto type = field<std::uint32_t>(bytes, type_at);
  std::size_t host_at = type_at + 8;
  std::size_t offset = type == HOST    ? 0
                       : type == ARRAY ? 16
                                       : 8;  // unified addresses are in `device`
  return {type, field<std::uint64_t>(bytes, host_at + offset)};
}

void describe_copy(Bytes bytes, std::size_t source_type_at, std::size_t destination_type_at,
                   std::optional<std::uint64_t> size, const Function& function, Details& details) {
  CopyEnd source = copy_end(bytes, source_type_at);
  CopyEnd destination = copy_end(bytes, destination_type_at);
  details.src = source.address;
  details.dst = destination.address;
  details.size = size;
  // A graph node only says what the graph will copy; a peer copy stays one whatever its types.
  if (!function.copies() || function.op == Op::peer) return;
  Op op = direction(source.type, destination.type);
  if (op != Op::none) details.op = op;
}

void describe_grid(Bytes bytes, std::size_t at, Details& details) {
  details.grid = {field<std::uint32_t>(bytes, at), field<std::uint32_t>(bytes, at + 4),
                  field<std::uint32_t>(bytes, at + 8)};
  details.block = {field<std::uint32_t>(bytes, at + 12), field<std::uint32_t>(bytes, at + 16),
                   field<std::uint32_t>(bytes, at + 20)};
  details.shared = field<std::uint32_t>(bytes, at + 24);
  details.has_dims = true;
}

void describe_kernel_node(Bytes bytes, Details& details) {
  constexpr std::size_t KERN_AT = 56;  // for a context-independent kernel; not in the first version
  auto func = field<std::uint64_t>(bytes, 0);
  details.handle = func ? func : field<std::uint64_t>(bytes, KERN_AT);
  describe_grid(bytes, 8, details);
}

void describe_fill(Bytes bytes, std::size_t element_size_at, Details& details) {
  std::size_t at = element_size_at;  // a width and a height follow
  details.size = product({field<std::uint32_t>(bytes, at), field<std::uint64_t>(bytes, at + 4),
                          field<std::uint64_t>(bytes, at + 12)});
}

// CUgraphNodeParams: what it holds depends on the node's type.
void describe_node(const Function& function, Bytes bytes, Details& details) {
  // CUgraphNodeType
  enum : std::uint32_t { KERNEL, COPY, SET, CALLBACK, GRAPH, ALLOC = 10, FREE = 11 };
  constexpr std::size_t PARAMETERS_AT = 16, COPY_AT = 32, ALLOC_SIZE_AT = 104;
  Bytes parameters = bytes.subspan(PARAMETERS_AT);
  switch (field<std::uint32_t>(bytes, 0)) {
    case KERNEL:
      details.node = NodeWork::kernel;
      describe_kernel_node(parameters, details);
      break;
    case COPY:
      details.node = NodeWork::copy;
      describe_struct(function, Struct::memcpy3d, bytes.subspan(COPY_AT), details);
      break;
    case SET:
      details.node = NodeWork::set;
      describe_fill(parameters, 20, details);
      break;
    case CALLBACK:
      details.node = NodeWork::host;
      break;
    case GRAPH:
      details.node = NodeWork::graph;
      details.child = field<std::uint64_t>(parameters, 0);
      break;
    case ALLOC:
      details.node = NodeWork::alloc;
      details.size = field<std::uint64_t>(parameters, ALLOC_SIZE_AT);
      break;
    case FREE:
      details.node = NodeWork::free;
      break;
    case CB_NODE_CONDITIONAL:
      details.node = NodeWork::conditional;
      break;
    default:
      details.node = NodeWork::other;
  }
}

// Offsets from the CUDA 13.0 headers (x86-64 and AArch64 agree).
void describe_struct(const Function& function, Struct layout, Bytes bytes, Details& details) {
  if (bytes.size() < sizeof(std::uint64_t) * struct_words(layout)) return;
  switch (layout) {
    case Struct::memcpy2d:
      describe_copy(bytes, 16, 72,
                    product({field<std::uint64_t>(bytes, 112), field<std::uint64_t>(bytes, 120)}),
                    function, details);
      break;
    case Struct::memcpy3d:
    case Struct::memcpy3d_peer:
      describe_copy(bytes, 32, 120,
                    product({field<std::uint64_t>(bytes, 176), field<std::uint64_t>(bytes, 184),
                             field<std::uint64_t>(bytes, 192)}),
                    function, details);
      break;
    case Struct::launch_config:
      describe_grid(bytes, 0, details);
      details.stream = field<std::uint64_t>(bytes, 32);
      break;
    case Struct::launch_params:
      details.handle = field<std::uint64_t>(bytes, 0);
      describe_grid(bytes, 8, details);
      details.stream = field<std::uint64_t>(bytes, 40);
      break;
    case Struct::kernel_node:
    case Struct::kernel_node_v1:
      describe_kernel_node(bytes, details);
      break;
    case Struct::memset_node:
      describe_fill(bytes, 20, details);
      break;
    case Struct::alloc_node:
      details.size = field<std::uint64_t>(bytes, 104);
      break;
    case Struct::graph_node:
      describe_node(function, bytes, details);
      break;
    case Struct::alloc_prop:
    case Struct::pool_props:
      // location.type and .id; with other types the id is a NUMA node's
      if (field<std::int32_t>(bytes, 8) == 1) details.device = field<std::int32_t>(bytes, 12);
      break;
    case Struct::comm_id:
      details.identity = identity_of(words_in<16>(bytes));
      break;
    case Struct::none:
    case Struct::sizes:
    case Struct::devices:
    case Struct::lt_product:
    case Struct::lt_matrix:
      break;
  }
}

std::optional<std::uint64_t> sum_of_array(std::uint64_t count, Bytes bytes) {
  if (count > bytes.size() / sizeof(std::uint64_t)) return std::nullopt;  // more than was read
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; i++)
    if (__builtin_add_overflow(sum, field<std::uint64_t>(bytes, i * 8), &sum)) return std::nullopt;
  return sum;
}

std::optional<std::uint64_t> size_of(const Function& function, Words words, Bytes structure) {
  const SizeRule& rule = function.size;
  if (rule.kind == SizeRule::Kind::none) return std::nullopt;
  const Argument& first = function.arguments[static_cast<std::size_t>(rule.argument)];
  if (rule.kind == SizeRule::Kind::sum_of_array) {
    auto count = word_of(function.arguments[static_cast<std::size_t>(rule.times)], words);
    return count ? sum_of_array(*count, structure) : std::nullopt;
  }
  if (first.out) return std::nullopt;  // known at return
  auto size = word_of(first, words);
  std::optional<std::uint64_t> times = 1;
  if (rule.times >= 0) {
    const Argument& second = function.arguments[static_cast<std::size_t>(rule.times)];
    times = word_of(second, words);
    if (times && second.role == Role::nccl_type) {
      times = nccl_type_bytes(static_cast<std::uint32_t>(*times));
      if (!*times) return std::nullopt;  // newer than this table
    }
  }
  return size && times ? product({*size, *times, rule.unit}) : std::nullopt;
}

// cuLaunchKernel and cuLaunchCooperativeKernel: function, grid, block, shared, stream, in order.
void describe_launch_words(Words words, Details& details) {
  auto dim = [&](std::size_t i) { return static_cast<std::uint32_t>(words[i]); };
  details.grid = {dim(1), dim(2), dim(3)};
  details.block = {dim(4), dim(5), dim(6)};
  details.shared = dim(7);
  details.stream = words[8];
  details.has_dims = true;
}

// Copies name their destination first.
void describe_addresses(const Function& function, Words words, Details& details) {
  for (const Argument& argument : function.arguments) {
    auto value = word_of(argument, words);
    if (!value || argument.out) continue;
    if (argument.role == Role::stream) details.stream = value;
    if (argument.role == Role::device && !details.device)
      details.device = static_cast<std::int32_t>(*value);
    if (argument.role == Role::mem_handle) details.handle = value;
    if (!is_address(argument.role)) continue;
    if (!function.copies()) {
      if (!details.ptr) details.ptr = value;
    } else if (argument.name.starts_with("src")) {
      details.src = value;
    } else {
      details.dst = value;
    }
  }
}

}  // namespace

std::uint64_t value_of(Role role, std::uint64_t word) {
  switch (role) {
    case Role::u8:
      return static_cast<std::uint8_t>(word);
    case Role::u16:
      return static_cast<std::uint16_t>(word);
    default:
      return is_narrow(role) ? static_cast<std::uint32_t>(word) : word;
  }
}

std::optional<std::uint64_t> argument_of(const Function& function, Words words, Role role) {
  for (const Argument& argument : function.arguments)
    if (argument.role == role && !argument.out)
      if (auto word = word_of(argument, words)) return word;
  return std::nullopt;
}

std::uint64_t identity_of(std::span<const std::uint64_t> words) {
  Hasher hasher({0x6375646162706620, 0x636f6d6d756e6963});  // any numbers that stay the same
  for (std::uint64_t word : words) hasher.add(word);
  return hasher.result();
}

Details describe_entry(const Function& function, Words words, Bytes structure) {
  Details details;
  details.op = function.op;
  if (function.launches_kernel()) {
    const auto& arguments = function.arguments;
    for (const Argument& argument : arguments) {
      if (argument.role == Role::function) details.handle = word_of(argument, words);
      if (argument.role == Role::stream) details.stream = word_of(argument, words);
    }
    if (arguments.size() > 8 && words.size() > 8) {
      describe_launch_words(words, details);
      return details;
    }
  } else {
    describe_addresses(function, words, details);
    details.size = size_of(function, words, structure);
  }
  for (const Argument& argument : function.arguments) {
    if (argument.role != Role::in_struct) continue;
    if (argument.by_value) {
      if (auto place = static_cast<std::size_t>(int{argument.word}); place < words.size())
        describe_struct(function, argument.layout, std::as_bytes(words.subspan(place)), details);
      continue;
    }
    std::size_t at = struct_words_before(function, argument) * sizeof(std::uint64_t);
    if (at < structure.size())
      describe_struct(function, argument.layout, structure.subspan(at), details);
  }
  return details;
}

std::vector<std::int32_t> listed_devices(const Function& function, Bytes structure) {
  std::vector<std::int32_t> devices;
  if (structure.empty()) return devices;
  for (const Argument& argument : function.arguments) {
    if (argument.layout != Struct::devices) continue;
    std::size_t at = struct_words_before(function, argument) * sizeof(std::uint64_t);
    Bytes list = structure.subspan(std::min(at, structure.size()));
    devices.resize(list.size() / sizeof(std::int32_t));
    std::memcpy(devices.data(), list.data(), devices.size() * sizeof(std::int32_t));
  }
  return devices;
}

void describe_outs(const Function& function, Words words, Words outs, Details& details) {
  if (function.type != Type::memory) return;
  std::size_t next = 0;
  std::optional<std::uint64_t> sizing_out;  // cuMemAllocPitch: the pitch
  for (const Argument& argument : function.arguments) {
    if (!argument.out || argument.role == Role::hidden) continue;
    if (next >= outs.size()) break;
    std::uint64_t value = value_of(argument.role, outs[next++]);
    if (was_null(argument, words)) continue;
    if (is_address(argument.role)) details.ptr = value;
    if (argument.role == Role::mem_handle) details.handle = value;
    const auto* rule_argument =
        function.size.argument >= 0
            ? &function.arguments[static_cast<std::size_t>(function.size.argument)]
            : nullptr;
    if (&argument == rule_argument) sizing_out = value;
  }
  if (sizing_out && function.size.times >= 0) {
    auto times = word_of(function.arguments[static_cast<std::size_t>(function.size.times)], words);
    if (times) details.size = product({*sizing_out, *times});
  }
}

}  // namespace cudabpf
