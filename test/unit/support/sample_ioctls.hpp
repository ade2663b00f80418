// Ioctls of the NVIDIA driver, byte by byte.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "cudabpf/ioctl.hpp"

namespace sample {

using namespace cudabpf;

constexpr DriverVersion UNKNOWN = {};
constexpr DriverVersion V470 = {470, 256, 2}, V515 = {515, 105, 1}, V525 = {525, 147, 5},
                        V530 = {530, 41, 3}, V535 = {535, 261, 3}, V550 = {550, 163, 1},
                        V570 = {570, 211, 1}, V575 = {575, 64, 5}, V580 = {580, 159, 4},
                        V590 = {590, 48, 1}, V595 = {595, 45, 4}, V610 = {610, 43, 2};

// A struct's bytes, with nothing after them, so that the sanitizer sees a read beyond them.
struct Bytes {
  explicit Bytes(std::size_t size) : bytes(size) {}
  Bytes& word(std::size_t at, std::uint32_t value) { return put(at, &value, 4); }
  Bytes& wide(std::size_t at, std::uint64_t value) { return put(at, &value, 8); }
  Bytes& put(std::size_t at, const void* value, std::size_t size) {
    REQUIRE(at + size <= bytes.size());
    std::memcpy(bytes.data() + at, value, size);
    return *this;
  }
  operator std::span<const std::byte>() const { return bytes; }

  std::vector<std::byte> bytes;
};

inline std::uint32_t escape(std::uint32_t number, std::size_t size) {
  return 3u << 30 | static_cast<std::uint32_t>(size) << 16 | std::uint32_t{'F'} << 8 | number;
}

inline IoctlWords words(DriverNode node, std::uint32_t command,
                        std::span<const std::byte> structure = {},
                        std::span<const std::byte> parameters = {}) {
  IoctlWords ioctl;
  ioctl.node = node;
  ioctl.command = command;
  ioctl.structure = structure;
  ioctl.parameters = parameters;
  return ioctl;
}

inline IoctlWords escape_words(std::uint32_t number, const Bytes& structure,
                               std::span<const std::byte> parameters = {}) {
  return words(DriverNode::ctl, escape(number, structure.bytes.size()), structure, parameters);
}

inline IoctlWords uvm_words(std::uint32_t number, std::span<const std::byte> structure) {
  return words(DriverNode::uvm, number, structure);
}

// Through NV_ESC_IOCTL_XFER_CMD.
inline IoctlWords wrapped(std::uint32_t number, std::size_t size) {
  IoctlWords ioctl = words(DriverNode::ctl, escape(0xd3, 16));
  ioctl.inner = number;
  ioctl.inner_size = static_cast<std::uint32_t>(size);
  return ioctl;
}

// The driver's answer if every word of its struct holds its own offset.
inline std::optional<std::uint32_t> status_offset(IoctlWords ioctl, std::size_t size,
                                                  const DriverVersion& version) {
  Bytes structure(size);
  // Above NV_ERR_GENERIC, so that no offset is taken for a failure.
  for (std::size_t at = 0; at + 4 <= size; at += 4)
    structure.word(at, static_cast<std::uint32_t>(0x10000 + at));
  ioctl.structure = structure;
  IoctlDetails details;
  auto status = describe_ioctl_return(ioctl, structure, version, details);
  return status ? std::optional(*status - 0x10000) : std::nullopt;
}

inline std::optional<std::uint32_t> escape_status(std::uint32_t number, std::size_t size,
                                                  const DriverVersion& version) {
  return status_offset(words(DriverNode::ctl, escape(number, size)), size, version);
}

inline std::optional<std::uint32_t> uvm_status(std::uint32_t number, std::size_t size,
                                               const DriverVersion& version) {
  return status_offset(words(DriverNode::uvm, number), size, version);
}

inline IoctlDetails control(std::uint32_t number, const DriverVersion& version,
                            std::span<const std::byte> parameters = {}) {
  Bytes structure(32);
  structure.word(0, 0xc1d00001).word(4, 0x5c000002).word(8, number);
  return describe_ioctl(escape_words(0x2a, structure, parameters), version);
}

inline IoctlDetails allocation(std::uint32_t klass, const DriverVersion& version,
                               std::span<const std::byte> parameters = {}) {
  Bytes structure(32);
  structure.word(0, 0xc1d00001).word(4, 0x5c000002).word(8, 0x5c000003).word(12, klass);
  return describe_ioctl(escape_words(0x2b, structure, parameters), version);
}

}  // namespace sample
