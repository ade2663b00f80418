// The tables of include/cudabpf/driver/, as scripts/gen-driver-tables.py generates them: the names
// of the driver's numbers, and the offsets of the fields that are read from its structs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "cudabpf/driver.hpp"

namespace cudabpf {

// A number's name in some versions of the driver.
struct DriverName {
  std::uint32_t number;
  std::string_view name;
  DriverGroup group;
  DriverVersion since, until;  // the first that has it, the first that no longer has it

  bool holds_at(const DriverVersion& version) const {
    return order(since) <= order(version) && order(version) < order(until);
  }

  // DriverVersion's own <=> is not used: clang-tidy 14 takes the 0 in a defaulted one for a null
  // pointer.
  static constexpr std::uint64_t order(const DriverVersion& version) {
    return std::uint64_t{version.major} << 32 | std::uint64_t{version.minor} << 16 | version.patch;
  }
};

struct Field {
  static constexpr std::uint16_t NOWHERE = std::numeric_limits<std::uint16_t>::max();

  std::uint16_t at = NOWHERE;
  std::uint8_t more = 0;  // to be added: 1 if the struct has a limit instead of a length
  bool returned = false;  // the driver may write it

  bool present() const { return at != NOWHERE; }
  bool operator==(const Field&) const = default;
};

struct Layout {
  Field client, parent, object, control, klass, length, base, status;
};
// For loops over all fields.
constexpr Field Layout::*LAYOUT_FIELDS[] = {
    &Layout::client, &Layout::parent, &Layout::object, &Layout::control,
    &Layout::klass,  &Layout::length, &Layout::base,   &Layout::status,
};

// When a layout holds only for certain structs: NVOS32's `function` says what its union contains.
struct Condition {
  bool set = false;
  std::uint16_t at = 0;
  std::uint32_t value = 0;
};

// One layout of one ioctl. A number has several where its struct has changed.
struct IoctlRow {
  DriverName named;
  std::uint16_t size;  // of the struct; 0: it has none, or none of it is read
  Condition when;
  Layout layout;

  bool may_hold_at(const DriverVersion& version) const {
    return !version.known() || named.holds_at(version);
  }
};

// A parameter that is worth a field of its own.
struct ParameterField {
  std::string_view name;
  std::uint8_t at = 0, width = 0;
};

struct ControlRow {
  DriverName named;
  bool firmware;  // the GPU's own firmware carries it out
  ParameterField value;
};

struct ClassRow {
  DriverName named;
  Field size;  // of the memory; lies in the parameters
  ParameterField value;
};

// All rows of a number, oldest first.
std::span<const IoctlRow> escape_rows(std::uint32_t number);
std::span<const IoctlRow> uvm_rows(std::uint32_t number);
std::span<const ControlRow> control_rows(std::uint32_t number);
std::span<const ClassRow> class_rows(std::uint32_t number);

// The row that names a number in this version; the newest row if the version is unknown.
template <class Row>
const Row* row_at(std::span<const Row> rows, const DriverVersion& version) {
  if (rows.empty()) return nullptr;
  if (!version.known()) return &rows.back();
  for (const Row& row : rows)
    if (row.named.holds_at(version)) return &row;
  return nullptr;
}

}  // namespace cudabpf
