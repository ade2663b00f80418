#include "trace/write/call_line.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cudabpf/abi.h"
#include "trace/write/product_fields.hpp"
#include "util/text/json.hpp"

namespace cudabpf {

using json::put;
using json::put_address;
using json::put_number;
using json::put_signed;

namespace {

bool is_dimension(std::string_view name) {
  return name.starts_with("gridDim") || name.starts_with("blockDim") || name.starts_with("grid_") ||
         name == "sharedMemBytes";
}

// The place of the first or last argument for which `is` holds; the number of arguments if none.
template <typename Predicate>
std::size_t place_of(const Function& function, bool last, Predicate is) {
  std::size_t found = function.arguments.size();
  for (std::size_t i = 0; i < function.arguments.size(); i++)
    if (is(function.arguments[i]) && (last || found == function.arguments.size())) found = i;
  return found;
}

// The argument that says which memory a call is about: what a memory call returned, else the first
// or last of those that it was given.
template <typename Predicate>
std::size_t memory_argument(const Function& function, bool last, Predicate is) {
  auto returned = [&](const Argument& a) {
    return a.out && is(a.role) && function.type == Type::memory;
  };
  std::size_t result = place_of(function, true, returned);
  if (result < function.arguments.size()) return result;
  return place_of(function, last, [&](const Argument& a) { return !a.out && is(a.role); });
}

std::uint8_t fields_of(const Details& details) {
  unsigned fields = 0;
  if (details.size) fields |= DETAIL_SIZE;
  if (details.ptr) fields |= DETAIL_PTR;
  if (details.dst) fields |= DETAIL_DST;
  if (details.src) fields |= DETAIL_SRC;
  if (details.stream) fields |= DETAIL_STREAM;
  if (details.handle) fields |= DETAIL_HANDLE;
  if (details.device) fields |= DETAIL_DEVICE;
  if (details.has_dims) fields |= DETAIL_DIMS;
  return static_cast<std::uint8_t>(fields);
}

// A number that has a name, or the number.
char* put_named(char* at, std::string_view name, std::uint64_t number) {
  if (name.empty()) return put_number(at, number);
  *at++ = '"';
  at = put(at, name);
  *at++ = '"';
  return at;
}

// CUmemLocation: its type in the low half, its id in the high one.
char* put_location(char* at, std::uint64_t value) {
  constexpr std::string_view TYPES[] = {"invalid", "device", "host", "host_numa",
                                        "host_numa_current"};
  auto type = static_cast<std::uint32_t>(value);
  at = put(at, "{\"type\":");
  at = put_named(at, type < std::size(TYPES) ? TYPES[type] : std::string_view(), type);
  at = put(at, ",\"id\":");
  at = put_signed(at, static_cast<std::int32_t>(value >> 32));
  *at++ = '}';
  return at;
}
// JSON has no infinity.
char* put_float(char* at, std::uint64_t value) {
  auto number = std::bit_cast<float>(static_cast<std::uint32_t>(value));
  if (!std::isfinite(number)) return put(at, "null");
  return std::to_chars(at, at + json::MAX_NUMBER, number).ptr;
}

constexpr std::size_t MAX_VALUE = 64;  // the longest of any argument but a string

char* put_value(char* at, Role role, std::uint64_t value) {
  switch (role) {
    case Role::u8:
      return put_number(at, value & 0xff);
    case Role::u16:
      return put_number(at, value & 0xffff);
    case Role::u32:
      return put_number(at, value & 0xffffffff);
    case Role::u64:
    case Role::count:
      return put_number(at, value);
    case Role::i32:
    case Role::rank:
    case Role::ranks:
    case Role::root:
    case Role::peer:
    case Role::color:
    case Role::key:
    case Role::device:
      return put_signed(at, static_cast<std::int32_t>(value));
    case Role::f32:
      return put_float(at, value);
    case Role::location:
      return put_location(at, value);
    case Role::nccl_type:
      return put_named(at, nccl_type_name(static_cast<std::uint32_t>(value)), value & 0xffffffff);
    case Role::nccl_op:
      return put_named(at, nccl_op_name(static_cast<std::uint32_t>(value)), value & 0xffffffff);
    case Role::blas_op:
      return put_named(at, blas_op_name(static_cast<std::uint32_t>(value)), value & 0xffffffff);
    case Role::cuda_type:
      return put_named(at, matrix_type(static_cast<CudaType>(value)).name, value & 0xffffffff);
    case Role::compute_type:
      return put_named(at, compute_name(static_cast<ComputeType>(value)), value & 0xffffffff);
    case Role::ptr32:
      return put_address(at, value & 0xffffffff);
    default:
      return put_address(at, value);
  }
}

char* put_dim(char* at, std::string_view key, const Dim3& dim) {
  at = put(at, key);
  at = put_number(at, dim.x);
  *at++ = ',';
  at = put_number(at, dim.y);
  *at++ = ',';
  at = put_number(at, dim.z);
  *at++ = ']';
  return at;
}

char* put_error(char* at, const Function& function, std::int32_t result) {
  at = put(at, ",\"error\":\"");
  if (auto name = function.result_name(result); !name.empty()) {
    at = put(at, name);
  } else {  // one that a newer driver added
    at = put(at, "unknown (");
    at = put_signed(at, result);
    *at++ = ')';
  }
  *at++ = '"';
  return at;
}

char* put_flags(char* at, const Call& call) {
  if (call.unfinished) at = put(at, ",\"unfinished\":true");
  if (call.return_lost) at = put(at, ",\"return_lost\":true");
  if (call.entry_lost) at = put(at, ",\"entry_lost\":true");
  if (call.read_fault) at = put(at, ",\"read_fault\":true");
  if (call.string_cut) at = put(at, ",\"text_cut\":true");
  if (call.details.inferred_op) at = put(at, ",\"inferred\":true");
  if (call.captured) at = put(at, ",\"captured\":true");
  return at;
}

// What a launched graph holds, or why that is not known.
char* put_graph(char* at, const Call& call) {
  if (call.graph) {
    at = put(at, ",\"graph\":");
    at = put_number(at, call.graph->number);
    at = put(at, ",\"nodes\":");
    at = put_number(at, call.graph->nodes);
    at = put(at, ",\"kernels\":");
    return put_number(at, call.graph->kernels);
  }
  if (call.graph_unknown == GraphUnknown::none) return at;
  at = put(at, ",\"graph_unknown\":\"");
  at = put(at, to_string(call.graph_unknown));
  *at++ = '"';
  return at;
}

// Which communicator it is given to, as which of its operations, and in which group.
char* put_communicator(char* at, const Call& call) {
  auto number = [&](std::string_view key, std::uint64_t value) {
    at = put_number(put(at, key), value);
  };
  if (call.communicator) {
    number(",\"communicator\":", call.communicator->number);
    if (auto rank = call.communicator->rank) at = put_signed(put(at, ",\"rank\":"), *rank);
    if (auto ranks = call.communicator->ranks) at = put_signed(put(at, ",\"ranks\":"), *ranks);
  }
  if (call.sequence && call.function->type == Type::collective) number(",\"seq\":", call.sequence);
  if (call.group) number(",\"call_group\":", call.group);
  return at;
}

// The field of a line that shows an argument of a collective; empty: it is one of `args`.
std::string_view collective_field(Role role) {
  switch (role) {
    case Role::count:
      return "count";
    case Role::nccl_type:
      return "datatype";
    case Role::nccl_op:
      return "reduction";
    case Role::root:
      return "root";
    case Role::peer:
      return "peer";
    default:
      return {};
  }
}

// Enough for all but the function's names, the kernel's name and the arguments.
constexpr std::size_t FIXED_BOUND = 1536;

}  // namespace

std::uint8_t detail_filled_by(const Function& function, std::size_t index) {
  const Argument& argument = function.arguments[index];
  const SizeRule& size = function.size;
  // A product does not show its factors, nor a sum how many terms it had.
  if (size.kind == SizeRule::Kind::product && size.times < 0 &&
      size.argument == static_cast<int>(index))
    return DETAIL_SIZE;
  if (function.launches_kernel()) {
    if (is_dimension(argument.name)) return DETAIL_DIMS;
    if (argument.role == Role::function || argument.role == Role::kernel) return DETAIL_HANDLE;
  }
  auto is_input_of = [](Role role) {
    return [role](const Argument& a) { return !a.out && a.role == role; };
  };
  if (place_of(function, true, is_input_of(Role::stream)) == index) return DETAIL_STREAM;
  if (place_of(function, false, is_input_of(Role::device)) == index) return DETAIL_DEVICE;
  auto is_memory_handle = [](Role role) { return role == Role::mem_handle; };
  if (memory_argument(function, true, is_memory_handle) == index) return DETAIL_HANDLE;
  if (!function.copies()) {
    if (memory_argument(function, false, is_address) == index) return DETAIL_PTR;
  } else if (!argument.out && is_address(argument.role)) {
    return argument.name.starts_with("src") ? DETAIL_SRC : DETAIL_DST;
  }
  return 0;
}

// The constant pieces of a function's lines.
struct CallLine::FunctionText {
  struct ArgumentText {
    std::string key;  // "bytesize":
    Role role;
    enum class From : std::uint8_t { word, out, text } from;
    std::uint8_t place;   // which word, or which out-pointer
    std::uint8_t word;    // of an out-pointer too
    std::uint8_t detail;  // shown only where Details lacks this field
  };

  explicit FunctionText(const Function& function);

  std::string before_op;  // ,"type":"transfer","op":"
  std::string after_op;   // ","name":"cuMemcpy","ts":
  Op op;
  std::string with_op;  // both, with the function's own op between them
  std::string kind;     // ,"kind":"device"
  bool async;
  std::vector<ArgumentText> arguments;
  std::vector<ArgumentText> fields;  // arguments that are fields of the line itself
  std::size_t bound = FIXED_BOUND;
};

CallLine::FunctionText::FunctionText(const Function& function)
    : op(function.op), async(function.async) {
  before_op = ",\"type\":" + json::quoted(to_string(function.type)) + ",\"op\":\"";
  after_op = "\",\"name\":" + json::quoted(function.name);
  if (function.api != ApiId::cuda) {
    const Api& of = api(function.api);
    after_op += fmt::format(",\"library\":\"{}\",\"layer\":{}", of.key, of.layer);
  }
  if (function.symbol != function.name) after_op += ",\"symbol\":" + json::quoted(function.symbol);
  after_op += ",\"ts\":";
  with_op = before_op + std::string(to_string(op)) + after_op;
  if (function.kind) kind = ",\"kind\":" + json::quoted(to_string(*function.kind));
  bound += before_op.size() + after_op.size() + kind.size();

  using From = ArgumentText::From;
  std::uint8_t outs = 0;
  bool has_text = false;
  for (std::size_t i = 0; i < function.arguments.size(); i++) {
    const Argument& argument = function.arguments[i];
    if (argument.word < 0 || argument.word >= CB_MAX_ARGS) continue;  // not recorded
    auto from = argument.out ? From::out : From::word;
    auto place = static_cast<std::uint8_t>(argument.out ? outs++ : argument.word);
    if (argument.role == Role::hidden || argument.role == Role::in_struct) continue;
    if (function.type == Type::product && is_told_by_product(argument.name)) continue;
    if (argument.out && place >= CB_MAX_OUTS) continue;
    if (is_text(argument.role)) {
      if (has_text) continue;  // only the first is read
      has_text = true;
      from = From::text;
    }
    std::string_view field;
    if (function.type == Type::collective && !argument.out) field = collective_field(argument.role);
    auto& among = field.empty() ? arguments : fields;
    among.push_back({json::quoted(field.empty() ? argument.name : field) + ":", argument.role, from,
                     place, static_cast<std::uint8_t>(argument.word),
                     detail_filled_by(function, i)});
    bound += among.back().key.size() + MAX_VALUE;
  }
}

CallLine::CallLine() : known_(cuda_functions().size()) {}
CallLine::~CallLine() = default;

const CallLine::FunctionText& CallLine::text_of(const Function& function) {
  auto table = cuda_functions();
  bool known = &function >= table.data() && &function < table.data() + table.size();
  auto& text =
      known ? known_[static_cast<std::size_t>(&function - table.data())] : others_[&function];
  if (!text) text = std::make_unique<FunctionText>(function);
  return *text;
}

std::size_t CallLine::bound(const Call& call) {
  return text_of(*call.function).bound + (call.kernel ? call.kernel->json.size() : 0) +
         json::MAX_EXPANSION * (call.text.size() + call.holder.size()) + MAX_VALUE +
         to_string(call.details.op).size();
}

char* CallLine::write(char* at, const Call& call) {
  const FunctionText& text = text_of(*call.function);
  at = put(at, "{\"id\":");
  at = put_number(at, call.id);
  if (call.details.op == Op::none || call.details.op == text.op) {
    at = put(at, text.with_op);
  } else {
    at = put(at, text.before_op);
    at = put(at, to_string(call.details.op));
    at = put(at, text.after_op);
  }
  at = put_number(at, call.ts);
  if (call.has_return && !call.entry_lost) {
    at = put(at, ",\"duration_us\":");
    at = json::put_microseconds(at, call.duration);
  }
  at = put(at, ",\"pid\":");
  at = put_number(at, call.pid);
  at = put(at, ",\"tid\":");
  at = put_number(at, call.tid);
  if ((call.has_return || call.entry_lost) && call.function->has_result) {
    at = put(at, ",\"ret\":");
    at = put_signed(at, call.result);
    if (call.result != 0) at = put_error(at, *call.function, call.result);
  }
  auto around = [&](std::string_view key, std::uint64_t id) {
    if (!id) return;
    at = put(at, key);
    at = put_number(at, id);
  };
  around(",\"parent\":", call.parent);
  around(",\"within\":", call.within);
  if (call.range) around(",\"range\":", call.range->number);
  if (call.stack) around(",\"stack\":", call.stack->number);
  if (!call.holder.empty()) at = json::put_string(put(at, ",\"holder\":"), call.holder);
  if (call.communicator || call.group) at = put_communicator(at, call);
  if (call.product) at = put_product(at, *call.product);
  for (const auto& field : text.fields) {
    if (field.place >= call.words.size()) continue;
    at = put_value(put(put(at, ","), field.key), field.role, call.words[field.place]);
  }
  at = write_details(at, call, text);
  at = put_graph(at, call);
  at = write_arguments(at, call, text);
  if (call.ioctls) {
    at = put(at, ",\"ioctls\":");
    at = put_number(at, call.ioctls);
    at = put(at, ",\"ioctl_us\":");
    at = json::put_microseconds(at, call.ioctl_time);
  }
  return put(put_flags(at, call), "}\n");
}

char* CallLine::write_details(char* at, const Call& call, const FunctionText& text) {
  const Details& details = call.details;
  auto address = [&](std::string_view key, const std::optional<std::uint64_t>& value) {
    if (!value) return;
    at = put(at, key);
    at = put_address(at, *value);
  };
  if (details.size) {
    at = put(at, ",\"size\":");
    at = put_number(at, *details.size);
  }
  address(",\"ptr\":", details.ptr);
  at = put(at, text.kind);
  address(",\"dst\":", details.dst);
  address(",\"src\":", details.src);
  address(",\"stream\":", details.stream);
  if (text.async) at = put(at, ",\"async\":true");
  if (call.kernel) {
    at = put(at, ",\"kernel\":");
    at = put(at, call.kernel->json);
    if (call.kernel->from_handle) at = put(at, ",\"kernel_from\":\"handle\"");
  }
  if (details.has_dims) {
    at = put_dim(at, ",\"grid\":[", details.grid);
    at = put_dim(at, ",\"block\":[", details.block);
    at = put(at, ",\"shared\":");
    at = put_number(at, details.shared);
  }
  address(",\"handle\":", details.handle);
  if (details.device) {
    at = put(at, ",\"device\":");
    at = put_signed(at, *details.device);
  }
  if (details.src_device && details.dst_device) {
    at = put(at, ",\"src_device\":");
    at = put_signed(at, *details.src_device);
    at = put(at, ",\"dst_device\":");
    at = put_signed(at, *details.dst_device);
  }
  return at;
}

char* CallLine::write_arguments(char* at, const Call& call, const FunctionText& text) {
  using From = FunctionText::ArgumentText::From;
  std::uint8_t known = fields_of(call.details);
  bool any = false;
  for (const auto& argument : text.arguments) {
    if (argument.detail & known) continue;
    if (argument.from == From::word && argument.place >= call.words.size()) continue;
    if (argument.from == From::out) {
      if (argument.place >= call.outs.size()) continue;
      bool was_null = argument.word < call.words.size() && !call.words[argument.word];
      if (was_null) continue;  // the caller wanted no value
    }
    if (argument.from == From::text && !call.has_text) continue;
    at = put(at, any ? "," : ",\"args\":{");
    any = true;
    at = put(at, argument.key);
    if (argument.from == From::text)
      at = json::put_string(at, call.text);
    else
      at = put_value(
          at, argument.role,
          argument.from == From::out ? call.outs[argument.place] : call.words[argument.place]);
  }
  if (any) *at++ = '}';
  return at;
}

}  // namespace cudabpf
