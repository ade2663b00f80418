// Records as the kernel side writes them, for tests of decoding and correlating.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "cudabpf/cuda_api.hpp"
#include "cudabpf/record.hpp"

namespace samples {

// What a record's head says, unless the record's kind decides it.
struct Head {
  std::uint64_t ts = 0;
  std::uint32_t pid = 100;
  std::uint32_t tid = 100;
  std::uint32_t sp = 0x1000;
  std::uint32_t drops = 0;
  std::uint8_t flags = 0;
};

inline std::uint16_t id_of(std::string_view symbol) {
  const cudabpf::Function* function = cudabpf::find_function(symbol);
  if (!function) throw std::invalid_argument(std::string(symbol));
  return static_cast<std::uint16_t>(function - cudabpf::cuda_functions().data());
}

// A record's bytes, aligned to 8 as the ring's are.
class RecordBytes {
 public:
  explicit RecordBytes(std::size_t size = 0) { resize(size); }

  void resize(std::size_t size) {
    size_ = size;
    storage_.resize((size + 7) / 8);
  }
  void append(const void* data, std::size_t size) {
    std::size_t at = size_;
    resize(size_ + size);
    if (size) std::memcpy(raw() + at, data, size);
  }
  std::byte* raw() { return reinterpret_cast<std::byte*>(storage_.data()); }
  std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(storage_.data()), size_};
  }
  cudabpf::abi::cb_head& head() { return *reinterpret_cast<cudabpf::abi::cb_head*>(raw()); }
  template <typename T>
  T& as() {
    return *reinterpret_cast<T*>(raw());
  }
  std::optional<cudabpf::Record> parse() const { return cudabpf::parse_record(bytes()); }

 private:
  std::vector<std::uint64_t> storage_;
  std::size_t size_ = 0;
};

inline RecordBytes with_head(const Head& head, std::uint8_t kind, std::size_t size) {
  RecordBytes record(size);
  cudabpf::abi::cb_head& to = record.head();
  to.ts = head.ts;
  to.pid = head.pid;
  to.tid = head.tid;
  to.sp = head.sp;
  to.drops = head.drops;
  to.flags = head.flags;
  to.kind = kind;
  return record;
}

inline RecordBytes entry(const Head& head, std::uint16_t function,
                         const std::vector<std::uint64_t>& words = {},
                         std::span<const std::byte> structure = {}, const char* text = nullptr) {
  RecordBytes record = with_head(head, cudabpf::abi::CB_ENTRY, sizeof(cudabpf::abi::cb_head));
  record.head().function = function;
  record.head().nargs = static_cast<std::uint8_t>(words.size());
  record.head().struct_size = static_cast<std::uint8_t>(structure.size());
  record.append(words.data(), words.size() * 8);
  record.append(structure.data(), structure.size());
  if (text) {
    std::size_t size = std::strlen(text) + 1;
    record.head().string_size = static_cast<std::uint16_t>(size);
    record.append(text, size);
  }
  return record;
}
inline RecordBytes entry(const Head& head, std::string_view symbol,
                         const std::vector<std::uint64_t>& words = {},
                         std::span<const std::byte> structure = {}, const char* text = nullptr) {
  return entry(head, id_of(symbol), words, structure, text);
}

inline RecordBytes returned(const Head& head, std::uint16_t function, int result = 0,
                            const std::vector<std::uint64_t>& outs = {}) {
  RecordBytes record = with_head(head, cudabpf::abi::CB_RETURN, sizeof(cudabpf::abi::cb_head));
  record.head().function = function;
  record.head().result = result;
  record.append(outs.data(), outs.size() * 8);
  return record;
}
inline RecordBytes returned(const Head& head, std::string_view symbol, int result = 0,
                            const std::vector<std::uint64_t>& outs = {}) {
  return returned(head, id_of(symbol), result, outs);
}

inline RecordBytes name(const Head& head, std::uint64_t handle, std::string_view text) {
  RecordBytes record = with_head(head, cudabpf::abi::CB_NAME, sizeof(cudabpf::abi::cb_name));
  record.as<cudabpf::abi::cb_name>().handle = handle;
  if (!text.empty()) {
    record.head().string_size = static_cast<std::uint16_t>(text.size() + 1);
    record.append(text.data(), text.size());
    record.append("", 1);
  }
  return record;
}

inline RecordBytes process(const Head& head, cudabpf::abi::cb_kind kind) {
  RecordBytes record =
      with_head(head, static_cast<std::uint8_t>(kind), sizeof(cudabpf::abi::cb_process));
  record.as<cudabpf::abi::cb_process>().ns_pid = head.pid;
  return record;
}

inline RecordBytes driver_begins(const Head& head, std::uint16_t op, std::uint32_t device,
                                 std::uint32_t command = 0,
                                 std::span<const std::byte> structure = {},
                                 std::span<const std::byte> parameters = {}) {
  RecordBytes record = with_head(head, cudabpf::abi::CB_DRIVER, sizeof(cudabpf::abi::cb_driver));
  record.head().function = op;
  record.head().struct_size = static_cast<std::uint8_t>(structure.size());
  record.head().string_size = static_cast<std::uint16_t>(parameters.size());
  auto& driver = record.as<cudabpf::abi::cb_driver>();
  driver.device = device;
  driver.command = command;
  std::copy(structure.begin(), structure.end(),
            std::as_writable_bytes(std::span(driver.structure)).begin());
  std::copy(parameters.begin(), parameters.end(),
            std::as_writable_bytes(std::span(driver.parameters)).begin());
  return record;
}

inline RecordBytes driver_ends(const Head& head, std::uint16_t op, std::int64_t result = 0,
                               std::span<const std::byte> structure = {}) {
  RecordBytes record =
      with_head(head, cudabpf::abi::CB_DRIVER_RETURN, sizeof(cudabpf::abi::cb_driver_return));
  record.head().function = op;
  record.head().struct_size = static_cast<std::uint8_t>(structure.size());
  auto& driver = record.as<cudabpf::abi::cb_driver_return>();
  driver.result = result;
  std::copy(structure.begin(), structure.end(),
            std::as_writable_bytes(std::span(driver.structure)).begin());
  return record;
}

inline RecordBytes interrupted(const Head& head, std::uint16_t op, std::uint64_t began) {
  RecordBytes record =
      with_head(head, cudabpf::abi::CB_INTERRUPT, sizeof(cudabpf::abi::cb_interrupt));
  record.head().function = op;
  record.as<cudabpf::abi::cb_interrupt>().began = began;
  return record;
}

inline RecordBytes xid(const Head& head, std::uint32_t number, std::string_view device,
                       std::string_view message) {
  RecordBytes record = with_head(head, cudabpf::abi::CB_XID, sizeof(cudabpf::abi::cb_xid));
  auto& body = record.as<cudabpf::abi::cb_xid>();
  body.number = number;
  std::copy(device.begin(), device.end(), body.device);
  std::copy(message.begin(), message.end(), body.message);
  return record;
}

inline RecordBytes thread_exit(const Head& head) {
  return with_head(head, cudabpf::abi::CB_THREAD_EXIT, sizeof(cudabpf::abi::cb_head));
}

// A struct that a call points to, field by field.
class StructBytes {
 public:
  explicit StructBytes(std::size_t size) : bytes_(size) {}
  template <typename T>
  StructBytes& set(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
    return *this;
  }
  operator std::span<const std::byte>() const { return bytes_; }  // NOLINT: implicit on purpose

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace samples
