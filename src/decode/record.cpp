#include "cudabpf/record.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace cudabpf {

namespace {

using Bytes = std::span<const std::byte>;

// No clock reaches this in 292 years, and the sum of two times up to it does not overflow.
constexpr std::uint64_t LATEST = std::numeric_limits<std::int64_t>::max();

// A string as bpf_probe_read_user_str leaves it: `bytes` counts its NUL.
std::string_view text_of(Bytes bytes) {
  if (bytes.empty()) return {};
  return fixed_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool parse_entry(Record& record, Bytes rest) {
  const auto& head = *record.head;
  std::size_t words_size = head.nargs * sizeof(std::uint64_t);
  if (head.nargs > CB_MAX_ARGS || head.struct_size > CB_MAX_STRUCT) return false;
  if (words_size + head.struct_size + head.string_size > rest.size()) return false;
  record.words = {reinterpret_cast<const std::uint64_t*>(rest.data()), head.nargs};
  rest = rest.subspan(words_size);
  record.structure = rest.first(head.struct_size);
  record.has_text = head.string_size > 0;
  record.text = text_of(rest.subspan(head.struct_size, head.string_size));
  rest = rest.subspan(head.struct_size + head.string_size);
  auto take = [&](abi::cb_flag flag, std::uint64_t& word) {
    if (!(head.flags & flag)) return true;
    if (rest.size() < sizeof(word)) return false;
    std::memcpy(&word, rest.data(), sizeof(word));
    rest = rest.subspan(sizeof(word));
    return true;
  };
  return take(abi::CB_PAYLOAD, record.payload) && take(abi::CB_STACK_KNOWN, record.stack);
}

bool parse_return(Record& record, Bytes rest) {
  std::size_t count = rest.size() / sizeof(std::uint64_t);
  if (count > CB_MAX_LISTED || rest.size() % sizeof(std::uint64_t)) return false;
  record.words = {reinterpret_cast<const std::uint64_t*>(rest.data()), count};
  return true;
}

// A struct, and a text behind it.
template <typename Struct>
const Struct* parse_with_text(Record& record, Bytes all) {
  if (all.size() < sizeof(Struct)) return nullptr;
  Bytes rest = all.subspan(sizeof(Struct));
  if (record.head->string_size > rest.size()) return nullptr;
  record.has_text = record.head->string_size > 0;
  record.text = text_of(rest.first(record.head->string_size));
  return reinterpret_cast<const Struct*>(all.data());
}

bool parse_name(Record& record, Bytes all) {
  const auto* name = parse_with_text<abi::cb_name>(record, all);
  if (!name) return false;
  record.handle = name->handle;
  return true;
}

bool parse_gpu_times(Record& record, Bytes all) {
  record.gpu_times = parse_with_text<abi::cb_gpu_times>(record, all);
  return record.gpu_times != nullptr;
}

bool parse_gpu_name(Record& record, Bytes all) {
  const auto* name = parse_with_text<abi::cb_gpu_name>(record, all);
  if (!name) return false;
  record.handle = name->name;
  return true;
}

bool parse_gpu_operation(Record& record, Bytes all) {
  std::uint16_t op = record.head->function;
  if (all.size() < sizeof(abi::cb_gpu_operation) || op < abi::CB_GPU_KERNEL ||
      op > abi::CB_GPU_GRAPH)
    return false;
  record.gpu_operation = reinterpret_cast<const abi::cb_gpu_operation*>(all.data());
  return std::max(record.gpu_operation->began, record.gpu_operation->ended) <= LATEST;
}

bool parse_gpu_batch(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_gpu_batch)) return false;
  record.gpu_batch = reinterpret_cast<const abi::cb_gpu_batch*>(all.data());
  return true;
}

bool parse_gpu_window(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_gpu_window)) return false;
  record.gpu_window = reinterpret_cast<const abi::cb_gpu_window*>(all.data());
  return record.gpu_window->step >= abi::CB_GPU_OPENING &&
         record.gpu_window->step <= abi::CB_GPU_CLOSED;
}

bool parse_range(Record& record, Bytes all) {
  std::uint16_t op = record.head->function;
  record.range = parse_with_text<abi::cb_range>(record, all);
  return record.range && op >= abi::CB_RANGE_PUSH && op <= abi::CB_RANGE_CATEGORY;
}

bool parse_stack(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_stack)) return false;
  record.described = reinterpret_cast<const abi::cb_stack*>(all.data());
  Bytes rest = all.subspan(sizeof(abi::cb_stack));
  if (record.described->size > rest.size()) return false;
  record.frames = rest = rest.first(record.described->size);
  for (unsigned i = 0; i < record.described->frames; i++)
    if (!next_frame(rest)) return false;
  return rest.empty() && record.described->frames <= CB_STACK_FRAMES;
}

bool parse_call_stack(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_call_stack)) return false;
  record.stack = reinterpret_cast<const abi::cb_call_stack*>(all.data())->number;
  return true;
}

bool parse_python(Record& record, Bytes all) {
  record.python = parse_with_text<abi::cb_python>(record, all);
  return record.python != nullptr;
}

bool parse_holder(Record& record, Bytes rest) {
  if (record.head->string_size > rest.size()) return false;
  record.has_text = record.head->string_size > 0;
  record.text = text_of(rest.first(record.head->string_size));
  return true;
}

bool parse_lt_layout(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_lt_layout)) return false;
  record.lt_layout = reinterpret_cast<const abi::cb_lt_layout*>(all.data());
  return true;
}

bool parse_blas_handle(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_blas_handle)) return false;
  record.blas_handle = reinterpret_cast<const abi::cb_blas_handle*>(all.data());
  return true;
}

bool parse_process(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_process)) return false;
  record.process = reinterpret_cast<const abi::cb_process*>(all.data());
  return record.process->cmdline_size <= CB_CMDLINE;
}

bool is_driver_op(std::uint16_t op) { return op >= abi::CB_IOCTL && op <= abi::CB_FAULT; }

bool parse_driver(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_driver) || !is_driver_op(record.head->function)) return false;
  record.driver = reinterpret_cast<const abi::cb_driver*>(all.data());
  const auto& head = *record.head;
  if (head.struct_size > CB_MAX_IOCTL || head.string_size > CB_MAX_PARAMS) return false;
  record.structure = std::as_bytes(std::span(record.driver->structure)).first(head.struct_size);
  record.parameters = std::as_bytes(std::span(record.driver->parameters)).first(head.string_size);
  return true;
}

bool parse_driver_return(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_driver_return) || !is_driver_op(record.head->function))
    return false;
  record.driver_return = reinterpret_cast<const abi::cb_driver_return*>(all.data());
  if (record.head->struct_size > CB_MAX_IOCTL) return false;
  record.structure =
      std::as_bytes(std::span(record.driver_return->structure)).first(record.head->struct_size);
  return true;
}

bool parse_interrupt(Record& record, Bytes all) {
  std::uint16_t op = record.head->function;
  if (all.size() < sizeof(abi::cb_interrupt) || op < abi::CB_ISR || op > abi::CB_GPU_FAULTS)
    return false;
  record.interrupt = reinterpret_cast<const abi::cb_interrupt*>(all.data());
  return true;
}

bool parse_xid_record(Record& record, Bytes all) {
  if (all.size() < sizeof(abi::cb_xid)) return false;
  record.xid = reinterpret_cast<const abi::cb_xid*>(all.data());
  return true;
}

bool parse(Record& record, Bytes bytes) {
  record.head = reinterpret_cast<const abi::cb_head*>(bytes.data());
  if (record.head->ts > LATEST) return false;
  Bytes rest = bytes.subspan(sizeof(abi::cb_head));
  switch (record.head->kind) {
    case abi::CB_ENTRY:
      return parse_entry(record, rest);
    case abi::CB_RETURN:
      return parse_return(record, rest);
    case abi::CB_NAME:
      return parse_name(record, bytes);
    case abi::CB_START:
    case abi::CB_FORK:
    case abi::CB_EXEC:
    case abi::CB_EXIT:
      return parse_process(record, bytes);
    case abi::CB_STACK:
      return parse_stack(record, bytes);
    case abi::CB_CALL_STACK:
      return parse_call_stack(record, bytes);
    case abi::CB_PYTHON:
      return parse_python(record, bytes);
    case abi::CB_THREAD_EXIT:
      return true;
    case abi::CB_DRIVER:
      return parse_driver(record, bytes);
    case abi::CB_DRIVER_RETURN:
      return parse_driver_return(record, bytes);
    case abi::CB_INTERRUPT:
      return parse_interrupt(record, bytes);
    case abi::CB_XID:
      return parse_xid_record(record, bytes);
    case abi::CB_GPU_TIMES:
      return parse_gpu_times(record, bytes);
    case abi::CB_GPU_NAME:
      return parse_gpu_name(record, bytes);
    case abi::CB_GPU_WORK:
      return parse_gpu_operation(record, bytes);
    case abi::CB_GPU_BATCH:
      return parse_gpu_batch(record, bytes);
    case abi::CB_GPU_WINDOW:
      return parse_gpu_window(record, bytes);
    case abi::CB_RANGE:
      return parse_range(record, bytes);
    case abi::CB_HOLDER:
      return parse_holder(record, rest);
    case abi::CB_LT_LAYOUT:
      return parse_lt_layout(record, bytes);
    case abi::CB_BLAS_HANDLE:
      return parse_blas_handle(record, bytes);
    default:
      return false;
  }
}

}  // namespace

std::optional<StackFrame> next_frame(std::span<const std::byte>& frames) {
  abi::cb_stack_frame said{};
  if (frames.size() < sizeof(said)) return std::nullopt;
  std::memcpy(&said, frames.data(), sizeof(said));
  std::size_t texts = said.function_size + said.file_size;
  std::size_t size = sizeof(said) + ((texts + 7) & ~std::size_t{7});
  if (size > frames.size()) return std::nullopt;
  const char* text = reinterpret_cast<const char*>(frames.data() + sizeof(said));
  frames = frames.subspan(size);
  return StackFrame{
      said.line, {text, said.function_size}, {text + said.function_size, said.file_size}};
}

std::string_view fixed_text(std::span<const char> field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

std::optional<Record> parse_record(Bytes bytes) {
  std::optional<Record> record;
  if (bytes.size() < sizeof(abi::cb_head) || !parse(record.emplace(), bytes)) record.reset();
  return record;
}

}  // namespace cudabpf
