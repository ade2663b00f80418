// Bytes from the kernel side, checked and parsed. Nothing is copied: a Record points into the bytes
// that it was parsed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cudabpf/abi.h"
#include "cudabpf/descriptors.h"
#include "cudabpf/ranges.h"
#include "cudabpf/stacks.h"

namespace cudabpf {

struct Record {
  const abi::cb_head* head = nullptr;
  std::span<const std::uint64_t> words;  // entry: arguments; return: outs
  std::span<const std::byte> structure;  // entry; driver, at begin and end
  std::string_view text;                 // entry: the string argument; name: the name
  bool has_text = false;
  std::uint64_t payload = 0;                 // entry: see CB_PAYLOAD; 0: none
  std::uint64_t stack = 0;                   // entry, call_stack: its number; 0: none
  std::uint64_t handle = 0;                  // name: the kernel's; gpu_name: what stands for it
  const abi::cb_process* process = nullptr;  // start, fork, exec, exit
  const abi::cb_driver* driver = nullptr;
  const abi::cb_driver_return* driver_return = nullptr;
  const abi::cb_interrupt* interrupt = nullptr;
  const abi::cb_xid* xid = nullptr;
  const abi::cb_gpu_times* gpu_times = nullptr;
  const abi::cb_gpu_operation* gpu_operation = nullptr;
  const abi::cb_gpu_batch* gpu_batch = nullptr;
  const abi::cb_gpu_window* gpu_window = nullptr;
  const abi::cb_range* range = nullptr;
  const abi::cb_python* python = nullptr;
  const abi::cb_stack* described = nullptr;  // stack; next_frame() reads what follows it
  std::span<const std::byte> frames;
  const abi::cb_lt_layout* lt_layout = nullptr;
  const abi::cb_blas_handle* blas_handle = nullptr;
  std::span<const std::byte> parameters;  // driver: what `structure` points to
};

// Nothing if the bytes are not a record: too short, an unknown kind, lengths that do not add up.
// `bytes` must be aligned to 8, as the ring's records are.
std::optional<Record> parse_record(std::span<const std::byte> bytes);

struct StackFrame {
  std::uint32_t line = 0;
  std::string_view function, file;
};
// Takes the first off the frames of a stack; nothing: there is none, or it is malformed.
std::optional<StackFrame> next_frame(std::span<const std::byte>& frames);

// A fixed field that ends at its first NUL; what follows is stale.
std::string_view fixed_text(std::span<const char> field);

}  // namespace cudabpf
